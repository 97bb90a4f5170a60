//! A simulated GPU server with eight RoCE NICs.
