// SPDX-License-Identifier: GPL-2.0
/*
 * fakeroce: RoCE NICs without hardware, for tests.
 *
 * NIC number I is a platform device whose driver is called mlx5_core. It
 * carries
 *   - the network device railI: ethtool statistics under the names of the mlx5
 *     driver, pause, FEC, group statistics, link settings and DCB, and
 *   - the RDMA device mlx5_I (RoCE, one port): hw_counters, PMA counters, GIDs
 *     and a uverbs node.
 *
 * All that a reader sees passes through the kernel's own code (ethtool ioctl
 * and netlink, sysfs, RDMA netlink, rtnetlink, DCB netlink). Only the numbers
 * are made up. No packet ever leaves: what is transmitted is dropped.
 *
 * A test steers the NICs by writing lines to /proc/fakeroce, and reads the
 * number of calls to each driver callback there (on a real NIC, each call costs
 * firmware commands). /proc/fakeroce_values lists what every counter is at one
 * instant. tests/vm/README.md describes the language.
 *
 * Locking. rtnl, when needed, is taken first, then fr_nics_lock, then fr_lock.
 *   fr_nics_lock	which NICs exist. Never held while a NIC is made or
 *			removed, since removal waits for stalled readers.
 *   fr_lock		every counter and every setting of every NIC, so that
 *			one write is seen as a whole or not at all.
 *   rtnl		additionally for what decides which ethtool strings
 *			exist: the kernel asks for their number and then for
 *			their values, and sizes its buffer by the first answer.
 */
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/linkmode.h>
#include <linux/rtnetlink.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/math64.h>
#include <linux/ktime.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <net/addrconf.h>
#include <net/dcbnl.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include <rdma/rdma_counter.h>

#define FR_DRIVER	"mlx5_core"
#define FR_MAX		64
#define FR_PRIOS	8
#define FR_WRITE_MAX	(256 * 1024)
#define FR_STALL_MAX	600000		/* ms */
#define FR_QSETS	64

/* A ConnectX-7 as its driver presents it */
#define FR_FW_MAJOR	28
#define FR_FW_MINOR	39
#define FR_FW_SUB	1002
#define FR_BOARD	"MT_0000000838"
#define FR_PART		4129

static uint nics = 2;
module_param(nics, uint, 0444);
MODULE_PARM_DESC(nics, "how many NICs to begin with (0..64)");
static uint channels = 4;
module_param(channels, uint, 0444);
MODULE_PARM_DESC(channels, "channels of a NIC (1..256): 43 ethtool strings each");
static uint speed = 400000;
module_param(speed, uint, 0444);
MODULE_PARM_DESC(speed, "initial link speed, Mb/s");
static uint pfc = 0x08;
module_param(pfc, uint, 0444);
MODULE_PARM_DESC(pfc, "initial mask of the priorities with PFC");

/* ---- counter names ------------------------------------------------------ */

enum fr_sect { S_ETH, S_HW, S_PMA, S_FEC, S_NR };
static const char * const fr_sect_name[S_NR] = { "eth", "hw", "pma", "fec" };

/*
 * When an ethtool string exists: always, while PFC is on for a priority (0..7),
 * or while global pause is on.
 */
enum { V_ALWAYS = -1, V_GLOBAL = FR_PRIOS };

struct fr_cnt {
	char name[ETH_GSTRING_LEN];
	enum fr_sect sect;
	s8 vis;
	u64 base;	/* value at t0 */
	u64 rate;	/* a second */
	u64 t0;		/* CLOCK_MONOTONIC, ns */
};

/* ethtool indices that other paths need */
enum fr_key {
	K_RX_PACKETS, K_RX_BYTES, K_TX_PACKETS, K_TX_BYTES,
	K_RX_PACKETS_PHY, K_TX_PACKETS_PHY, K_RX_BYTES_PHY, K_TX_BYTES_PHY,
	K_RX_CRC, K_RX_SYMBOL, K_RX_DISCARDS, K_TX_DISCARDS, K_TX_ERRORS,
	K_RX_MCAST, K_TX_MCAST, K_RX_BCAST, K_TX_BCAST,
	K_RX_MACCTL, K_TX_MACCTL, K_RX_UNSUP,
	K_RX_PAUSE_CTRL, K_TX_PAUSE_CTRL,
	K_UNDERSIZE, K_OVERSIZE, K_FRAGMENTS, K_JABBERS,
	K_LINK_DOWN, K_RX_HIST0, K_NR = K_RX_HIST0 + 10
};

static const char * const fr_key_name[K_NR] = {
	"rx_packets", "rx_bytes", "tx_packets", "tx_bytes",
	"rx_packets_phy", "tx_packets_phy", "rx_bytes_phy", "tx_bytes_phy",
	"rx_crc_errors_phy", "rx_symbol_err_phy", "rx_discards_phy",
	"tx_discards_phy", "tx_errors_phy",
	"rx_multicast_phy", "tx_multicast_phy", "rx_broadcast_phy", "tx_broadcast_phy",
	"rx_mac_control_phy", "tx_mac_control_phy", "rx_unsupported_op_phy",
	"rx_pause_ctrl_phy", "tx_pause_ctrl_phy",
	"rx_undersize_pkts_phy", "rx_oversize_pkts_phy", "rx_fragments_phy",
	"rx_jabbers_phy", "link_down_events_phy",
	"rx_64_bytes_phy", "rx_65_to_127_bytes_phy", "rx_128_to_255_bytes_phy",
	"rx_256_to_511_bytes_phy", "rx_512_to_1023_bytes_phy",
	"rx_1024_to_1518_bytes_phy", "rx_1519_to_2047_bytes_phy",
	"rx_2048_to_4095_bytes_phy", "rx_4096_to_8191_bytes_phy",
	"rx_8192_to_10239_bytes_phy",
};

static const char * const fr_eth_head[] = {
	"rx_packets", "rx_bytes", "tx_packets", "tx_bytes",
	"tx_tso_packets", "tx_tso_bytes", "tx_added_vlan_packets", "tx_nop",
	"tx_mpwqe_blks", "tx_mpwqe_pkts", "rx_lro_packets", "rx_lro_bytes",
	"rx_gro_packets", "rx_gro_bytes", "rx_ecn_mark", "rx_removed_vlan_packets",
	"rx_csum_unnecessary", "rx_csum_none", "rx_csum_complete",
	"rx_xdp_drop", "rx_xdp_redirect", "tx_csum_none", "tx_csum_partial",
	"tx_queue_stopped", "tx_queue_dropped", "tx_xmit_more", "tx_recover",
	"tx_cqes", "tx_queue_wake", "tx_cqe_err", "rx_wqe_err",
	"rx_oversize_pkts_sw_drop", "rx_buff_alloc_err", "rx_cqe_compress_blks",
	"rx_cqe_compress_pkts", "rx_congst_umr", "rx_arfs_err", "rx_recover",
	"ch_events", "ch_poll", "ch_arm", "ch_aff_change", "ch_force_irq",
	"ch_eq_rearm", "rx_out_of_buffer", "rx_if_down_packets",
	"rx_steer_missed_packets",
	"rx_vport_unicast_packets", "rx_vport_unicast_bytes",
	"tx_vport_unicast_packets", "tx_vport_unicast_bytes",
	"rx_vport_multicast_packets", "rx_vport_multicast_bytes",
	"tx_vport_multicast_packets", "tx_vport_multicast_bytes",
	"rx_vport_broadcast_packets", "rx_vport_broadcast_bytes",
	"tx_vport_broadcast_packets", "tx_vport_broadcast_bytes",
	"rx_vport_rdma_unicast_packets", "rx_vport_rdma_unicast_bytes",
	"tx_vport_rdma_unicast_packets", "tx_vport_rdma_unicast_bytes",
	"rx_vport_rdma_multicast_packets", "rx_vport_rdma_multicast_bytes",
	"tx_vport_rdma_multicast_packets", "tx_vport_rdma_multicast_bytes",
	"tx_packets_phy", "rx_packets_phy", "rx_crc_errors_phy",
	"tx_bytes_phy", "rx_bytes_phy", "tx_multicast_phy", "tx_broadcast_phy",
	"rx_multicast_phy", "rx_broadcast_phy", "rx_in_range_len_errors_phy",
	"rx_out_of_range_len_phy", "rx_oversize_pkts_phy", "rx_symbol_err_phy",
	"tx_mac_control_phy", "rx_mac_control_phy", "rx_unsupported_op_phy",
	"rx_pause_ctrl_phy", "tx_pause_ctrl_phy", "rx_discards_phy",
	"tx_discards_phy", "tx_errors_phy", "rx_undersize_pkts_phy",
	"rx_fragments_phy", "rx_jabbers_phy", "rx_64_bytes_phy",
	"rx_65_to_127_bytes_phy", "rx_128_to_255_bytes_phy",
	"rx_256_to_511_bytes_phy", "rx_512_to_1023_bytes_phy",
	"rx_1024_to_1518_bytes_phy", "rx_1519_to_2047_bytes_phy",
	"rx_2048_to_4095_bytes_phy", "rx_4096_to_8191_bytes_phy",
	"rx_8192_to_10239_bytes_phy", "link_down_events_phy",
	"rx_pcs_symbol_err_phy", "rx_corrected_bits_phy",
	"rx_err_lane_0_phy", "rx_err_lane_1_phy", "rx_err_lane_2_phy",
	"rx_err_lane_3_phy", "rx_buffer_passed_thres_phy",
	"rx_pci_signal_integrity", "tx_pci_signal_integrity",
	"outbound_pci_stalled_rd", "outbound_pci_stalled_wr",
	"outbound_pci_stalled_rd_events", "outbound_pci_stalled_wr_events",
	"outbound_pci_buffer_overflow",
};

static const char * const fr_eth_prio[] = {
	"rx_prio%d_bytes", "rx_prio%d_packets", "rx_prio%d_discards",
	"tx_prio%d_bytes", "tx_prio%d_packets",
};

/* index 0 and 2 are what DCB reports as indications and requests */
static const char * const fr_eth_pause[] = {
	"rx_%s_pause", "rx_%s_pause_duration", "tx_%s_pause",
	"tx_%s_pause_duration", "rx_%s_pause_transition",
};

static const char * const fr_eth_tail[] = {
	"tx_pause_storm_warning_events", "tx_pause_storm_error_events",
	"module_unplug", "module_bus_stuck", "module_high_temp",
	"module_bad_shorted",
};

static const char * const fr_eth_congestion[] = {
	"rx_prio%d_buf_discard", "rx_prio%d_cong_discard", "rx_prio%d_marked",
};

static const char * const fr_eth_ch[] = {
	"ch%d_events", "ch%d_poll", "ch%d_arm", "ch%d_aff_change",
	"ch%d_force_irq", "ch%d_eq_rearm",
	"rx%d_packets", "rx%d_bytes", "rx%d_csum_complete",
	"rx%d_csum_unnecessary", "rx%d_csum_none", "rx%d_xdp_drop",
	"rx%d_xdp_redirect", "rx%d_lro_packets", "rx%d_lro_bytes",
	"rx%d_ecn_mark", "rx%d_removed_vlan_packets", "rx%d_wqe_err",
	"rx%d_mpwqe_filler_cqes", "rx%d_oversize_pkts_sw_drop",
	"rx%d_buff_alloc_err", "rx%d_cqe_compress_blks",
	"rx%d_cqe_compress_pkts", "rx%d_congst_umr", "rx%d_arfs_err",
	"rx%d_recover",
	"tx%d_packets", "tx%d_bytes", "tx%d_tso_packets", "tx%d_tso_bytes",
	"tx%d_csum_partial", "tx%d_added_vlan_packets", "tx%d_nop",
	"tx%d_mpwqe_blks", "tx%d_mpwqe_pkts", "tx%d_csum_none",
	"tx%d_stopped", "tx%d_dropped", "tx%d_xmit_more", "tx%d_recover",
	"tx%d_cqes", "tx%d_wake", "tx%d_cqe_err",
};

static const struct rdma_stat_desc fr_hw_desc[] = {
	{ .name = "rx_write_requests" },
	{ .name = "rx_read_requests" },
	{ .name = "rx_atomic_requests" },
	{ .name = "rx_dct_connect" },
	{ .name = "out_of_buffer" },
	{ .name = "out_of_sequence" },
	{ .name = "duplicate_request" },
	{ .name = "rnr_nak_retry_err" },
	{ .name = "packet_seq_err" },
	{ .name = "implied_nak_seq_err" },
	{ .name = "local_ack_timeout_err" },
	{ .name = "resp_local_length_error" },
	{ .name = "resp_cqe_error" },
	{ .name = "req_cqe_error" },
	{ .name = "req_remote_invalid_request" },
	{ .name = "req_remote_access_errors" },
	{ .name = "resp_remote_access_errors" },
	{ .name = "resp_cqe_flush_error" },
	{ .name = "req_cqe_flush_error" },
	{ .name = "req_transport_retries_exceeded" },
	{ .name = "req_rnr_retries_exceeded" },
	{ .name = "roce_adp_retrans" },
	{ .name = "roce_adp_retrans_to" },
	{ .name = "roce_slow_restart" },
	{ .name = "roce_slow_restart_cnps" },
	{ .name = "roce_slow_restart_trans" },
	{ .name = "rp_cnp_ignored" },
	{ .name = "rp_cnp_handled" },
	{ .name = "np_ecn_marked_roce_packets" },
	{ .name = "np_cnp_sent" },
	{ .name = "rx_icrc_encapsulated" },
	/* the optional ones must come last */
	{ .name = "cc_rx_ce_pkts", .flags = IB_STAT_FLAG_OPTIONAL },
	{ .name = "cc_rx_cnp_pkts", .flags = IB_STAT_FLAG_OPTIONAL },
	{ .name = "cc_tx_cnp_pkts", .flags = IB_STAT_FLAG_OPTIONAL },
};
#define FR_HW_ALL	ARRAY_SIZE(fr_hw_desc)
#define FR_HW_PLAIN	31		/* those that are not optional */
#define FR_HW_Q		26		/* of these, the Q counters */

enum fr_pma {
	P_SYMBOL, P_RECOVERY, P_DOWNED, P_RCV_ERR, P_RCV_PHYS_ERR, P_SWITCH_ERR,
	P_XMIT_DISCARD, P_XMIT_CONSTR, P_RCV_CONSTR, P_INTEGRITY, P_OVERRUN,
	P_VL15, P_XMIT_WAIT, P_XMIT_DATA, P_RCV_DATA, P_XMIT_PKT, P_RCV_PKT,
	P_UC_XMIT, P_UC_RCV, P_MC_XMIT, P_MC_RCV, P_NR
};

static const char * const fr_pma_name[P_NR] = {
	"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
	"port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
	"port_xmit_discards", "port_xmit_constraint_errors",
	"port_rcv_constraint_errors", "local_link_integrity_errors",
	"excessive_buffer_overrun_errors", "VL15_dropped", "port_xmit_wait",
	"port_xmit_data", "port_rcv_data", "port_xmit_packets",
	"port_rcv_packets", "unicast_xmit_packets", "unicast_rcv_packets",
	"multicast_xmit_packets", "multicast_rcv_packets",
};

static const char * const fr_fec_name[] = {
	"corrected_blocks", "uncorrectable_blocks", "corrected_bits",
};

/* ---- state ---------------------------------------------------------------- */

/* What is counted for /proc/fakeroce: calls that the kernel makes to the driver */
enum fr_call {
	C_STATS, C_SSET, C_STRINGS, C_DRVINFO, C_LINK_SETTINGS, C_EXT_STATE,
	C_PAUSE, C_PAUSE_STATS, C_FEC, C_FEC_STATS, C_GROUP_STATS, C_CHANNELS,
	C_TUNABLE, C_STATS64, C_DCB_PFC, C_DCB_ETS, C_DCB_DCBX, C_DCB_BUFFER,
	C_DCB_SET, C_HW_STATS, C_PMA, C_QUERY_PORT, C_QP_STATS, C_NR
};

static const char * const fr_call_name[C_NR] = {
	"ethtool_stats", "ethtool_sset", "ethtool_strings", "drvinfo",
	"link_settings", "ext_state", "pause", "pause_stats", "fec",
	"fec_stats", "group_stats", "channels", "tunable", "stats64",
	"dcb_pfc", "dcb_ets", "dcb_dcbx", "dcb_buffer", "dcb_set", "hw_stats",
	"pma", "query_port", "qp_stats",
};

#define FR_NO_PEER	0x100	/* no switch announces PFC by LLDP */

enum fr_knob {
	N_CARRIER, N_SPEED, N_PFC_EN, N_PAUSE, N_STALL, N_STALL_ETH, N_STALL_HW,
	N_FAIL, N_FAIL_ETH, N_FAIL_BEGIN, N_FAIL_SSET, N_FAIL_LINK, N_FAIL_FEC,
	N_FAIL_TUNABLE, N_FAIL_PFC, N_FAIL_ETS, N_FAIL_HW, N_FAIL_PMA,
	N_FREEZE_ETH, N_FREEZE_HW, N_Q32, N_PFC_FLAP, N_STORM_TOUT,
	N_PEER_PFC, N_LANES, N_FW_SUB, N_MODULE_CELSIUS, N_MODULE_RX_UW, N_NR
};

/* The callbacks that can be made to fail. A knob sets those of its mask. */
enum fr_fail {
	F_BEGIN, F_SSET, F_LINK, F_FEC, F_TUNABLE, F_PFC, F_ETS, F_HW, F_PMA, F_NR
};

static const struct {
	const char *name;
	u32 max;
	u32 fails;	/* mask of enum fr_fail */
} fr_knob[N_NR] = {
	[N_CARRIER]	= { "carrier", 1 },
	[N_SPEED]	= { "speed", INT_MAX },
	[N_PFC_EN]	= { "pfc_en", 0xff },
	[N_PAUSE]	= { "pause", 3 },
	[N_STALL]	= { "stall_ms", FR_STALL_MAX },
	[N_STALL_ETH]	= { "stall_eth_ms", FR_STALL_MAX },
	[N_STALL_HW]	= { "stall_hw_ms", FR_STALL_MAX },
	[N_FAIL]	= { "fail", 4000, BIT(F_HW) | BIT(F_PMA) },
	[N_FAIL_ETH]	= { "fail_eth", 4000, BIT(F_SSET) | BIT(F_LINK) | BIT(F_FEC) |
			    BIT(F_TUNABLE) | BIT(F_PFC) | BIT(F_ETS) },
	[N_FAIL_BEGIN]	= { "fail_begin", 4000, BIT(F_BEGIN) },
	[N_FAIL_SSET]	= { "fail_sset", 4000, BIT(F_SSET) },
	[N_FAIL_LINK]	= { "fail_link", 4000, BIT(F_LINK) },
	[N_FAIL_FEC]	= { "fail_fec", 4000, BIT(F_FEC) },
	[N_FAIL_TUNABLE] = { "fail_tunable", 4000, BIT(F_TUNABLE) },
	[N_FAIL_PFC]	= { "fail_pfc", 4000, BIT(F_PFC) },
	[N_FAIL_ETS]	= { "fail_ets", 4000, BIT(F_ETS) },
	[N_FAIL_HW]	= { "fail_hw", 4000, BIT(F_HW) },
	[N_FAIL_PMA]	= { "fail_pma", 4000, BIT(F_PMA) },
	[N_FREEZE_ETH]	= { "freeze_eth", 1 },
	[N_FREEZE_HW]	= { "freeze_hw", 1 },
	[N_Q32]		= { "q32", 1 },
	[N_PFC_FLAP]	= { "pfc_flap", 1 },
	[N_STORM_TOUT]	= { "pfc_storm_tout", U16_MAX },
	[N_PEER_PFC]	= { "peer_pfc", FR_NO_PEER },
	[N_LANES]	= { "lanes", 16 },
	[N_FW_SUB]	= { "fw_sub", 9999 },
	[N_MODULE_CELSIUS] = { "module_celsius", 127 },
	[N_MODULE_RX_UW] = { "module_rx_uw", 6553 },
};

struct fr_nic {
	unsigned int id;
	struct platform_device *pdev;
	struct net_device *ndev;
	struct ib_device *ibdev;	/* fr_lock; NULL while coming or going */
	atomic_t calls[C_NR];
	atomic64_t stalled_eth_ns, stalled_hw_ns;	/* sum of all stalls that ended */
	wait_queue_head_t stall_wq;

	/* fixed once made */
	int ncnt;
	int first[S_NR + 1];		/* bounds of the sections in cnt */
	int key[K_NR];
	int pause_idx[FR_PRIOS + 1];	/* first of five, by priority; [8] global */

	/* fr_lock */
	struct fr_cnt *cnt;
	bool link;
	u32 speed;
	u8 pfc_en;			/* also rtnl, like the next */
	bool rx_pause, tx_pause;
	u16 pfc_delay, storm_tout, peer_pfc, fw_sub;
	u8 lanes;			/* 0: as the speed has them */
	u8 module_celsius;		/* 0: a cable without memory */
	u16 module_rx_uw;		/* of the first lane */
	bool pfc_flap, q32;
	u32 stall_eth_ms, stall_hw_ms;
	int fail[F_NR];			/* errno, 0: works */
	u64 freeze_eth, freeze_hw;	/* ns, 0: not frozen */
	u64 dcb_requests[FR_PRIOS];	/* as of the last ethtool statistics */
	u64 dcb_indications[FR_PRIOS];
	DECLARE_BITMAP(qset_used, FR_QSETS);
	u64 qset[FR_QSETS][FR_HW_Q];	/* Q counters that queue pairs are bound to; [0] is none */

	/* fr_nics_lock */
	struct list_head qps;
	u32 next_qp;			/* number of the queue pair that is being made */

	/* rtnl */
	u32 fec;
	u8 dcbx;
	struct ieee_ets ets;
	struct dcbnl_buffer buf;
};

struct fr_ibdev {
	struct ib_device ibdev;		/* first: the core frees the whole */
	struct fr_nic *nic;
};

struct fr_qp {
	struct ib_qp qp;		/* first: the core frees the whole */
	struct list_head list;
	u32 number;
	enum ib_qp_state state;
};

static struct fr_qp *to_frqp(struct ib_qp *qp)
{
	return container_of(qp, struct fr_qp, qp);
}

static struct fr_nic *fr_nics[FR_MAX];
static DECLARE_BITMAP(fr_taken, FR_MAX);	/* present, coming or going */
static DEFINE_MUTEX(fr_nics_lock);
static DEFINE_SPINLOCK(fr_lock);

static struct fr_nic *nic_of(struct net_device *dev)
{
	return netdev_priv(dev);
}

static struct fr_nic *nic_of_ib(struct ib_device *d)
{
	return container_of(d, struct fr_ibdev, ibdev)->nic;
}

static void called(struct fr_nic *n, enum fr_call c)
{
	atomic_inc(&n->calls[c]);
}

/*
 * A firmware that does not answer. Not interruptible, as the wait for a
 * firmware command is not: a stalled reader cannot be killed. Setting the knob
 * to 0 ends the waits that are under way.
 */
static void stall(struct fr_nic *n, const u32 *ms, atomic64_t *sum)
{
	u32 t = READ_ONCE(*ms);
	u64 began;

	if (!t)
		return;
	began = ktime_get_ns();
	wait_event_timeout(n->stall_wq, !READ_ONCE(*ms), msecs_to_jiffies(t));
	atomic64_add(ktime_get_ns() - began, sum);
}

static void stall_eth(struct fr_nic *n)
{
	stall(n, &n->stall_eth_ms, &n->stalled_eth_ns);
}

static void stall_hw(struct fr_nic *n)
{
	stall(n, &n->stall_hw_ms, &n->stalled_hw_ns);
}

/* What a callback returns: 0, or the errno that the test asked for */
static int failing(const struct fr_nic *n, enum fr_fail f)
{
	return -READ_ONCE(n->fail[f]);
}

/* ---- counters (the caller holds fr_lock) ----------------------------------- */

static u64 cnt_at(const struct fr_cnt *c, u64 now)
{
	if (!c->rate || now <= c->t0)
		return c->base;
	return c->base + mul_u64_u64_div_u64(c->rate, now - c->t0, NSEC_PER_SEC);
}

/* the instant that a reader of a section sees */
static u64 eth_now(const struct fr_nic *n)
{
	return n->freeze_eth ?: ktime_get_ns();
}

static u64 hw_now(const struct fr_nic *n)
{
	return n->freeze_hw ?: ktime_get_ns();
}

static u64 key_at(const struct fr_nic *n, enum fr_key k, u64 now)
{
	return cnt_at(&n->cnt[n->key[k]], now);
}

static bool cnt_visible(const struct fr_nic *n, const struct fr_cnt *c)
{
	if (c->vis == V_ALWAYS)
		return true;
	if (c->vis == V_GLOBAL)
		return n->rx_pause || n->tx_pause;
	return n->pfc_en & BIT(c->vis);
}

/* ---- the list of counters, made once per NIC -------------------------------- */

static void __printf(4, 5) cnt_add(struct fr_nic *n, enum fr_sect s, s8 vis,
				   const char *fmt, ...)
{
	va_list ap;

	if (n->cnt) {
		struct fr_cnt *c = &n->cnt[n->ncnt];

		va_start(ap, fmt);
		vsnprintf(c->name, sizeof(c->name), fmt, ap);
		va_end(ap);
		c->sect = s;
		c->vis = vis;
	}
	n->ncnt++;
}

#define ADD_ALL(n, s, tab)						\
	do {								\
		int __i;						\
		for (__i = 0; __i < ARRAY_SIZE(tab); __i++)		\
			cnt_add(n, s, V_ALWAYS, "%s", (tab)[__i]);	\
	} while (0)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* Called twice: without n->cnt it only counts, with it it names. */
static void nic_layout(struct fr_nic *n)
{
	char who[12];
	int p, i;

	n->ncnt = 0;
	n->first[S_ETH] = 0;
	ADD_ALL(n, S_ETH, fr_eth_head);
	for (p = 0; p < FR_PRIOS; p++)
		for (i = 0; i < ARRAY_SIZE(fr_eth_prio); i++)
			cnt_add(n, S_ETH, V_ALWAYS, fr_eth_prio[i], p);
	for (p = 0; p <= FR_PRIOS; p++) {
		if (p < FR_PRIOS)
			snprintf(who, sizeof(who), "prio%d", p);
		else
			strscpy(who, "global", sizeof(who));
		n->pause_idx[p] = n->ncnt;
		for (i = 0; i < ARRAY_SIZE(fr_eth_pause); i++)
			cnt_add(n, S_ETH, p, fr_eth_pause[i], who);
	}
	ADD_ALL(n, S_ETH, fr_eth_tail);
	for (p = 0; p < channels; p++)
		for (i = 0; i < ARRAY_SIZE(fr_eth_ch); i++)
			cnt_add(n, S_ETH, V_ALWAYS, fr_eth_ch[i], p);
	for (p = 0; p < FR_PRIOS; p++)
		for (i = 0; i < ARRAY_SIZE(fr_eth_congestion); i++)
			cnt_add(n, S_ETH, V_ALWAYS, fr_eth_congestion[i], p);
	n->first[S_HW] = n->ncnt;
	for (i = 0; i < FR_HW_ALL; i++)
		cnt_add(n, S_HW, V_ALWAYS, "%s", fr_hw_desc[i].name);
	n->first[S_PMA] = n->ncnt;
	ADD_ALL(n, S_PMA, fr_pma_name);
	n->first[S_FEC] = n->ncnt;
	ADD_ALL(n, S_FEC, fr_fec_name);
	n->first[S_NR] = n->ncnt;
}
#pragma GCC diagnostic pop

static int nic_counters(struct fr_nic *n)
{
	int k, i;

	nic_layout(n);
	n->cnt = kvcalloc(n->ncnt, sizeof(*n->cnt), GFP_KERNEL);
	if (!n->cnt)
		return -ENOMEM;
	nic_layout(n);
	for (k = 0; k < K_NR; k++) {
		for (i = 0; i < n->first[S_HW]; i++)
			if (!strcmp(n->cnt[i].name, fr_key_name[k]))
				break;
		if (WARN_ON(i == n->first[S_HW]))
			return -EINVAL;
		n->key[k] = i;
	}
	return 0;
}

/* ---- network device ---------------------------------------------------------- */

/* fr_lock is held */
static void nic_carrier(struct fr_nic *n, bool up)
{
	struct ib_event ev = {
		.device = n->ibdev,
		.element.port_num = 1,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (netif_carrier_ok(n->ndev) == up)
		return;
	if (up)
		netif_carrier_on(n->ndev);
	else
		netif_carrier_off(n->ndev);
	if (n->ibdev)
		ib_dispatch_event(&ev);
}

/* The cable, so to speak: fr_lock is held */
static void nic_set_link(struct fr_nic *n, bool up, u64 now)
{
	struct fr_cnt *c = &n->cnt[n->key[K_LINK_DOWN]];

	if (n->link == up)
		return;
	n->link = up;
	if (!up) {
		c->base = cnt_at(c, now) + 1;
		c->t0 = now;
	}
	if (netif_running(n->ndev))
		nic_carrier(n, up);
}

static int fr_open(struct net_device *dev)
{
	struct fr_nic *n = nic_of(dev);

	netif_tx_start_all_queues(dev);
	spin_lock_bh(&fr_lock);
	nic_carrier(n, n->link);
	spin_unlock_bh(&fr_lock);
	return 0;
}

static int fr_stop(struct net_device *dev)
{
	netif_tx_stop_all_queues(dev);
	spin_lock_bh(&fr_lock);
	nic_carrier(nic_of(dev), false);
	spin_unlock_bh(&fr_lock);
	return 0;
}

static netdev_tx_t fr_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

/* As on mlx5, these are the software's rings: RoCE traffic is not in them. */
static void fr_stats64(struct net_device *dev, struct rtnl_link_stats64 *s)
{
	struct fr_nic *n = nic_of(dev);
	u64 now;

	called(n, C_STATS64);
	spin_lock_bh(&fr_lock);
	now = eth_now(n);
	s->rx_packets = key_at(n, K_RX_PACKETS, now);
	s->rx_bytes = key_at(n, K_RX_BYTES, now);
	s->tx_packets = key_at(n, K_TX_PACKETS, now);
	s->tx_bytes = key_at(n, K_TX_BYTES, now);
	s->multicast = key_at(n, K_RX_MCAST, now);
	s->rx_crc_errors = key_at(n, K_RX_CRC, now);
	s->rx_errors = s->rx_crc_errors;
	s->tx_errors = key_at(n, K_TX_ERRORS, now);
	s->rx_missed_errors = key_at(n, K_RX_DISCARDS, now);
	spin_unlock_bh(&fr_lock);
}

static int fr_phys_port_name(struct net_device *dev, char *name, size_t len)
{
	return snprintf(name, len, "p0") >= len ? -EINVAL : 0;
}

static const struct net_device_ops fr_netdev_ops = {
	.ndo_open		= fr_open,
	.ndo_stop		= fr_stop,
	.ndo_start_xmit		= fr_xmit,
	.ndo_get_stats64	= fr_stats64,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_get_phys_port_name	= fr_phys_port_name,
};

/* ---- ethtool ------------------------------------------------------------------- */

/* Asked before every ethtool request, by ioctl or netlink: a driver in a reset refuses here. */
static int fr_begin(struct net_device *dev)
{
	return failing(nic_of(dev), F_BEGIN);
}

static void fr_drvinfo(struct net_device *dev, struct ethtool_drvinfo *di)
{
	struct fr_nic *n = nic_of(dev);

	called(n, C_DRVINFO);
	strscpy(di->driver, FR_DRIVER, sizeof(di->driver));
	snprintf(di->fw_version, sizeof(di->fw_version), "%d.%d.%d (" FR_BOARD ")",
		 FR_FW_MAJOR, FR_FW_MINOR, FR_FW_SUB);
	strscpy(di->bus_info, dev_name(&n->pdev->dev), sizeof(di->bus_info));
}

static int fr_sset_count(struct net_device *dev, int set)
{
	struct fr_nic *n = nic_of(dev);
	int i, k = 0, err;

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	called(n, C_SSET);
	err = failing(n, F_SSET);
	if (err)
		return err;
	for (i = 0; i < n->first[S_HW]; i++)
		k += cnt_visible(n, &n->cnt[i]);
	return k;
}

static void fr_strings(struct net_device *dev, u32 set, u8 *data)
{
	struct fr_nic *n = nic_of(dev);
	int i;

	if (set != ETH_SS_STATS)
		return;
	called(n, C_STRINGS);
	for (i = 0; i < n->first[S_HW]; i++) {
		if (!cnt_visible(n, &n->cnt[i]))
			continue;
		memcpy(data, n->cnt[i].name, ETH_GSTRING_LEN);
		data += ETH_GSTRING_LEN;
	}
}

static void fr_eth_stats(struct net_device *dev, struct ethtool_stats *st, u64 *data)
{
	struct fr_nic *n = nic_of(dev);
	u64 now;
	int i;

	called(n, C_STATS);
	stall_eth(n);
	spin_lock_bh(&fr_lock);
	now = eth_now(n);
	for (i = 0; i < n->first[S_HW]; i++)
		if (cnt_visible(n, &n->cnt[i]))
			*data++ = cnt_at(&n->cnt[i], now);
	for (i = 0; i < FR_PRIOS; i++) {
		n->dcb_indications[i] = cnt_at(&n->cnt[n->pause_idx[i]], now);
		n->dcb_requests[i] = cnt_at(&n->cnt[n->pause_idx[i] + 2], now);
	}
	spin_unlock_bh(&fr_lock);
}

static u32 fr_lanes(u32 mbps)
{
	return mbps >= 800000 ? 8 : mbps >= 100000 ? 4 : mbps >= 50000 ? 2 : mbps == 40000 ? 4 : 1;
}

#define FR_MODE(ks, list, mode)	ethtool_link_ksettings_add_link_mode(ks, list, mode)

static int fr_get_ksettings(struct net_device *dev, struct ethtool_link_ksettings *ks)
{
	struct fr_nic *n = nic_of(dev);
	int err;

	called(n, C_LINK_SETTINGS);
	err = failing(n, F_LINK);
	if (err)
		return err;
	ethtool_link_ksettings_zero_link_mode(ks, supported);
	FR_MODE(ks, supported, FIBRE);
	FR_MODE(ks, supported, Autoneg);
	FR_MODE(ks, supported, Pause);
	FR_MODE(ks, supported, 25000baseCR_Full);
	FR_MODE(ks, supported, 50000baseCR_Full);
	FR_MODE(ks, supported, 100000baseCR4_Full);
	FR_MODE(ks, supported, 200000baseCR4_Full);
	FR_MODE(ks, supported, 400000baseCR4_Full);
	FR_MODE(ks, supported, FEC_NONE);
	FR_MODE(ks, supported, FEC_RS);
	linkmode_copy(ks->link_modes.advertising, ks->link_modes.supported);
	ks->base.port = PORT_DA;
	ks->base.autoneg = AUTONEG_ENABLE;
	if (netif_carrier_ok(dev)) {
		ks->base.speed = READ_ONCE(n->speed);
		ks->base.duplex = DUPLEX_FULL;
		ks->lanes = READ_ONCE(n->lanes) ?: fr_lanes(ks->base.speed);
	} else {
		ks->base.speed = SPEED_UNKNOWN;
		ks->base.duplex = DUPLEX_UNKNOWN;
		ks->lanes = 0;
	}
	return 0;
}

static int fr_set_ksettings(struct net_device *dev, const struct ethtool_link_ksettings *ks)
{
	if (ks->base.speed && ks->base.speed != (u32)SPEED_UNKNOWN)
		WRITE_ONCE(nic_of(dev)->speed, ks->base.speed);
	return 0;
}

static int fr_ext_state(struct net_device *dev, struct ethtool_link_ext_state_info *x)
{
	struct fr_nic *n = nic_of(dev);

	called(n, C_EXT_STATE);
	if (n->link)
		return -ENODATA;
	x->link_ext_state = ETHTOOL_LINK_EXT_STATE_NO_CABLE;
	return 0;
}

static void fr_pause_stats(struct net_device *dev, struct ethtool_pause_stats *s)
{
	struct fr_nic *n = nic_of(dev);
	u64 now;

	called(n, C_PAUSE_STATS);
	stall_eth(n);
	spin_lock_bh(&fr_lock);
	now = eth_now(n);
	s->rx_pause_frames = key_at(n, K_RX_PAUSE_CTRL, now);
	s->tx_pause_frames = key_at(n, K_TX_PAUSE_CTRL, now);
	spin_unlock_bh(&fr_lock);
}

static void fr_get_pause(struct net_device *dev, struct ethtool_pauseparam *p)
{
	struct fr_nic *n = nic_of(dev);

	called(n, C_PAUSE);
	p->autoneg = 0;
	p->rx_pause = n->rx_pause;
	p->tx_pause = n->tx_pause;
}

static int fr_set_pause(struct net_device *dev, struct ethtool_pauseparam *p)
{
	struct fr_nic *n = nic_of(dev);

	if (p->autoneg)
		return -EINVAL;
	spin_lock_bh(&fr_lock);
	n->rx_pause = p->rx_pause;
	n->tx_pause = p->tx_pause;
	spin_unlock_bh(&fr_lock);
	return 0;
}

static void fr_fec_stats(struct net_device *dev, struct ethtool_fec_stats *s)
{
	struct fr_nic *n = nic_of(dev);
	struct fr_cnt *c = &n->cnt[n->first[S_FEC]];
	u64 now;

	called(n, C_FEC_STATS);
	stall_eth(n);
	spin_lock_bh(&fr_lock);
	now = eth_now(n);
	s->corrected_blocks.total = cnt_at(&c[0], now);
	s->uncorrectable_blocks.total = cnt_at(&c[1], now);
	s->corrected_bits.total = cnt_at(&c[2], now);
	spin_unlock_bh(&fr_lock);
}

static int fr_get_fec(struct net_device *dev, struct ethtool_fecparam *p)
{
	struct fr_nic *n = nic_of(dev);
	int err;

	called(n, C_FEC);
	err = failing(n, F_FEC);
	if (err)
		return err;
	p->fec = n->fec;
	p->active_fec = netif_carrier_ok(dev) ? n->fec : 0;
	return 0;
}

static int fr_set_fec(struct net_device *dev, struct ethtool_fecparam *p)
{
	if (p->fec & ~(ETHTOOL_FEC_RS | ETHTOOL_FEC_OFF | ETHTOOL_FEC_BASER | ETHTOOL_FEC_AUTO))
		return -EOPNOTSUPP;
	nic_of(dev)->fec = p->fec;
	return 0;
}

/* one group is read at one instant; four groups are four firmware reads */
static u64 fr_group(struct fr_nic *n)
{
	called(n, C_GROUP_STATS);
	stall_eth(n);
	spin_lock_bh(&fr_lock);
	return eth_now(n);
}

static void fr_phy_stats(struct net_device *dev, struct ethtool_eth_phy_stats *s)
{
	struct fr_nic *n = nic_of(dev);
	u64 now = fr_group(n);

	s->SymbolErrorDuringCarrier = key_at(n, K_RX_SYMBOL, now);
	spin_unlock_bh(&fr_lock);
}

static void fr_mac_stats(struct net_device *dev, struct ethtool_eth_mac_stats *s)
{
	struct fr_nic *n = nic_of(dev);
	u64 now = fr_group(n);

	s->FramesTransmittedOK = key_at(n, K_TX_PACKETS_PHY, now);
	s->FramesReceivedOK = key_at(n, K_RX_PACKETS_PHY, now);
	s->FrameCheckSequenceErrors = key_at(n, K_RX_CRC, now);
	s->OctetsTransmittedOK = key_at(n, K_TX_BYTES_PHY, now);
	s->OctetsReceivedOK = key_at(n, K_RX_BYTES_PHY, now);
	s->MulticastFramesXmittedOK = key_at(n, K_TX_MCAST, now);
	s->BroadcastFramesXmittedOK = key_at(n, K_TX_BCAST, now);
	s->MulticastFramesReceivedOK = key_at(n, K_RX_MCAST, now);
	s->BroadcastFramesReceivedOK = key_at(n, K_RX_BCAST, now);
	spin_unlock_bh(&fr_lock);
}

static void fr_ctrl_stats(struct net_device *dev, struct ethtool_eth_ctrl_stats *s)
{
	struct fr_nic *n = nic_of(dev);
	u64 now = fr_group(n);

	s->MACControlFramesTransmitted = key_at(n, K_TX_MACCTL, now);
	s->MACControlFramesReceived = key_at(n, K_RX_MACCTL, now);
	s->UnsupportedOpcodesReceived = key_at(n, K_RX_UNSUP, now);
	spin_unlock_bh(&fr_lock);
}

static const struct ethtool_rmon_hist_range fr_ranges[] = {
	{ 0, 64 }, { 65, 127 }, { 128, 255 }, { 256, 511 }, { 512, 1023 },
	{ 1024, 1518 }, { 1519, 2047 }, { 2048, 4095 }, { 4096, 8191 },
	{ 8192, 10239 }, {}
};

static void fr_rmon_stats(struct net_device *dev, struct ethtool_rmon_stats *s,
			  const struct ethtool_rmon_hist_range **ranges)
{
	struct fr_nic *n = nic_of(dev);
	u64 now = fr_group(n);
	int i;

	s->undersize_pkts = key_at(n, K_UNDERSIZE, now);
	s->oversize_pkts = key_at(n, K_OVERSIZE, now);
	s->fragments = key_at(n, K_FRAGMENTS, now);
	s->jabbers = key_at(n, K_JABBERS, now);
	for (i = 0; i < 10; i++)
		s->hist[i] = key_at(n, K_RX_HIST0 + i, now);
	spin_unlock_bh(&fr_lock);
	*ranges = fr_ranges;
}

static void fr_channels(struct net_device *dev, struct ethtool_channels *c)
{
	called(nic_of(dev), C_CHANNELS);
	c->max_combined = channels;
	c->combined_count = channels;
}

static int fr_get_tunable(struct net_device *dev, const struct ethtool_tunable *t, void *data)
{
	struct fr_nic *n = nic_of(dev);
	int err;

	called(n, C_TUNABLE);
	err = failing(n, F_TUNABLE);
	if (err)
		return err;
	if (t->id != ETHTOOL_PFC_PREVENTION_TOUT)
		return -EOPNOTSUPP;
	*(u16 *)data = READ_ONCE(n->storm_tout);
	return 0;
}

static int fr_set_tunable(struct net_device *dev, const struct ethtool_tunable *t, const void *data)
{
	if (t->id != ETHTOOL_PFC_PREVENTION_TOUT)
		return -EOPNOTSUPP;
	WRITE_ONCE(nic_of(dev)->storm_tout, *(const u16 *)data);
	return 0;
}

static void put_be16(u8 *memory, int at, u16 value)
{
	memory[at] = value >> 8;
	memory[at + 1] = value;
}

/* A QSFP28 by SFF-8636, page 0 alone */
static int fr_module_eeprom(struct net_device *dev, const struct ethtool_module_eeprom *page,
			    struct netlink_ext_ack *extack)
{
	struct fr_nic *n = nic_of(dev);
	u8 memory[256] = { 0x11, 0x08, 0x04 };
	int lane;

	if (!READ_ONCE(n->module_celsius))
		return -EOPNOTSUPP;
	if (page->page || page->bank || page->i2c_address != 0x50 ||
	    page->offset + page->length > sizeof(memory))
		return -EINVAL;
	memory[22] = READ_ONCE(n->module_celsius);
	put_be16(memory, 26, 33000);
	for (lane = 0; lane < 4; lane++) {
		put_be16(memory, 34 + 2 * lane, 10 * (lane ? 900 : READ_ONCE(n->module_rx_uw)));
		put_be16(memory, 42 + 2 * lane, 3500);
		put_be16(memory, 50 + 2 * lane, 10 * 900);
	}
	memory[220] = 0x3c;		/* it measures all of these */
	memcpy(page->data, memory + page->offset, page->length);
	return page->length;
}

static const struct ethtool_ops fr_ethtool_ops = {
	.cap_link_lanes_supported = true,
	.begin			= fr_begin,
	.get_drvinfo		= fr_drvinfo,
	.get_link		= ethtool_op_get_link,
	.get_link_ext_state	= fr_ext_state,
	.get_sset_count		= fr_sset_count,
	.get_strings		= fr_strings,
	.get_ethtool_stats	= fr_eth_stats,
	.get_link_ksettings	= fr_get_ksettings,
	.set_link_ksettings	= fr_set_ksettings,
	.get_pause_stats	= fr_pause_stats,
	.get_pauseparam		= fr_get_pause,
	.set_pauseparam		= fr_set_pause,
	.get_fec_stats		= fr_fec_stats,
	.get_fecparam		= fr_get_fec,
	.set_fecparam		= fr_set_fec,
	.get_eth_phy_stats	= fr_phy_stats,
	.get_eth_mac_stats	= fr_mac_stats,
	.get_eth_ctrl_stats	= fr_ctrl_stats,
	.get_rmon_stats		= fr_rmon_stats,
	.get_channels		= fr_channels,
	.get_module_eeprom_by_page = fr_module_eeprom,
	.get_tunable		= fr_get_tunable,
	.set_tunable		= fr_set_tunable,
};

/* ---- DCB (under rtnl) --------------------------------------------------------- */

static int fr_getets(struct net_device *dev, struct ieee_ets *e)
{
	struct fr_nic *n = nic_of(dev);
	int err;

	called(n, C_DCB_ETS);
	err = failing(n, F_ETS);
	if (err)
		return err;
	*e = n->ets;
	return 0;
}

static int fr_setets(struct net_device *dev, struct ieee_ets *e)
{
	struct fr_nic *n = nic_of(dev);

	called(n, C_DCB_SET);
	n->ets = *e;
	n->ets.ets_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

/*
 * As on mlx5, requests (sent) and indications (received) are those of the last
 * ethtool statistics: they stand still until somebody asks for these.
 */
static int fr_getpfc(struct net_device *dev, struct ieee_pfc *p)
{
	struct fr_nic *n = nic_of(dev);
	int err;

	called(n, C_DCB_PFC);
	err = failing(n, F_PFC);
	if (err)
		return err;
	p->pfc_cap = FR_PRIOS;
	p->pfc_en = n->pfc_en;
	spin_lock_bh(&fr_lock);
	p->delay = n->pfc_delay;
	memcpy(p->indications, n->dcb_indications, sizeof(p->indications));
	memcpy(p->requests, n->dcb_requests, sizeof(p->requests));
	spin_unlock_bh(&fr_lock);
	return 0;
}

static int fr_setpfc(struct net_device *dev, struct ieee_pfc *p)
{
	struct fr_nic *n = nic_of(dev);
	u64 now;

	called(n, C_DCB_SET);
	spin_lock_bh(&fr_lock);
	if (n->pfc_en != p->pfc_en && n->pfc_flap && n->link) {
		now = ktime_get_ns();
		nic_set_link(n, false, now);
		nic_set_link(n, true, now);
	}
	n->pfc_en = p->pfc_en;
	if (n->pfc_en)
		n->rx_pause = n->tx_pause = false;
	if (p->delay)
		n->pfc_delay = p->delay;
	spin_unlock_bh(&fr_lock);
	return 0;
}

static int fr_peer_getpfc(struct net_device *dev, struct ieee_pfc *p)
{
	u16 mask = READ_ONCE(nic_of(dev)->peer_pfc);

	if (mask == FR_NO_PEER)
		return -EOPNOTSUPP;
	p->pfc_cap = FR_PRIOS;
	p->pfc_en = mask;
	return 0;
}

static u8 fr_getdcbx(struct net_device *dev)
{
	called(nic_of(dev), C_DCB_DCBX);
	return nic_of(dev)->dcbx;
}

static u8 fr_setdcbx(struct net_device *dev, u8 mode)
{
	called(nic_of(dev), C_DCB_SET);
	if (!(mode & DCB_CAP_DCBX_VER_IEEE))
		return 1;
	nic_of(dev)->dcbx = mode;
	return 0;
}

static int fr_getbuffer(struct net_device *dev, struct dcbnl_buffer *b)
{
	called(nic_of(dev), C_DCB_BUFFER);
	*b = nic_of(dev)->buf;
	return 0;
}

static int fr_setbuffer(struct net_device *dev, struct dcbnl_buffer *b)
{
	called(nic_of(dev), C_DCB_SET);
	nic_of(dev)->buf = *b;
	return 0;
}

/* APP entries: the kernel keeps them itself where a driver has no callback */
static const struct dcbnl_rtnl_ops fr_dcb_ops = {
	.ieee_getets	= fr_getets,
	.ieee_setets	= fr_setets,
	.ieee_getpfc	= fr_getpfc,
	.ieee_setpfc	= fr_setpfc,
	.ieee_peer_getpfc = fr_peer_getpfc,
	.getdcbx	= fr_getdcbx,
	.setdcbx	= fr_setdcbx,
	.dcbnl_getbuffer = fr_getbuffer,
	.dcbnl_setbuffer = fr_setbuffer,
};

/* ---- RDMA device ----------------------------------------------------------------- */

static int fr_query_device(struct ib_device *d, struct ib_device_attr *a, struct ib_udata *u)
{
	if (u && (u->inlen || u->outlen))
		return -EINVAL;
	memset(a, 0, sizeof(*a));
	a->fw_ver = (u64)FR_FW_MAJOR << 32 | FR_FW_MINOR << 16 | FR_FW_SUB;
	a->sys_image_guid = d->node_guid;
	a->vendor_id = 0x02c9;
	a->vendor_part_id = FR_PART;
	a->max_mr_size = ~0ULL;
	a->page_size_cap = PAGE_SIZE;
	a->max_qp = 1 << 17;
	a->max_cq = 1 << 24;
	a->max_pd = 1 << 24;
	a->max_mr = 1 << 24;
	a->max_qp_wr = 1 << 15;
	a->max_cqe = 1 << 22;
	a->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	a->max_pkeys = 1;
	return 0;
}

static void fr_ib_speed(u32 mbps, u16 *sp, u8 *width)
{
	static const struct { u32 mbps; u16 speed; u8 width; } map[] = {
		{ 400000, IB_SPEED_NDR, IB_WIDTH_4X },
		{ 200000, IB_SPEED_HDR, IB_WIDTH_4X },
		{ 100000, IB_SPEED_EDR, IB_WIDTH_4X },
		{ 50000, IB_SPEED_HDR, IB_WIDTH_1X },
		{ 40000, IB_SPEED_QDR, IB_WIDTH_4X },
		{ 25000, IB_SPEED_EDR, IB_WIDTH_1X },
		{ 10000, IB_SPEED_QDR, IB_WIDTH_1X },
		{ 0, IB_SPEED_SDR, IB_WIDTH_1X },
	};
	int i = 0;

	while (mbps < map[i].mbps)
		i++;
	*sp = map[i].speed;
	*width = map[i].width;
}

static int fr_query_port(struct ib_device *d, u32 port, struct ib_port_attr *a)
{
	struct fr_nic *n = nic_of_ib(d);
	bool up = netif_running(n->ndev) && netif_carrier_ok(n->ndev);

	called(n, C_QUERY_PORT);
	a->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	a->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	a->max_mtu = IB_MTU_4096;
	a->active_mtu = iboe_get_mtu(n->ndev->mtu);
	a->gid_tbl_len = 256;
	a->ip_gids = true;
	a->port_cap_flags = IB_PORT_CM_SUP;
	a->max_msg_sz = 1 << 30;
	a->pkey_tbl_len = 1;
	fr_ib_speed(READ_ONCE(n->speed), &a->active_speed, &a->active_width);
	return 0;
}

static int fr_immutable(struct ib_device *d, u32 port, struct ib_port_immutable *im)
{
	im->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE | RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	im->gid_tbl_len = 256;
	im->pkey_tbl_len = 1;
	return 0;
}

static enum rdma_link_layer fr_link_layer(struct ib_device *d, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int fr_query_pkey(struct ib_device *d, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;
	return 0;
}

static int fr_add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int fr_del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static void fr_fw_str(struct ib_device *d, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%d.%d.%04d", FR_FW_MAJOR, FR_FW_MINOR,
		 READ_ONCE(nic_of_ib(d)->fw_sub));
}

static int fr_alloc_ucontext(struct ib_ucontext *c, struct ib_udata *u)
{
	return 0;
}

static void fr_dealloc_ucontext(struct ib_ucontext *c)
{
}

/* With this callback, removal does not wait for programs that hold the device. */
static void fr_disassociate(struct ib_ucontext *c)
{
}

static int fr_alloc_pd(struct ib_pd *pd, struct ib_udata *u)
{
	return 0;
}

static int fr_dealloc_pd(struct ib_pd *pd, struct ib_udata *u)
{
	return 0;
}

static struct rdma_hw_stats *fr_alloc_hw_stats(struct ib_device *d, u32 port)
{
	struct rdma_hw_stats *st;
	int i;

	BUILD_BUG_ON(FR_HW_ALL != FR_HW_PLAIN + 3);
	st = rdma_alloc_hw_stats_struct(fr_hw_desc, FR_HW_ALL, RDMA_HW_STATS_DEFAULT_LIFESPAN);
	if (!st)
		return NULL;
	for (i = FR_HW_PLAIN; i < FR_HW_ALL; i++)
		set_bit(i, st->is_disabled);	/* off until "rdma statistic set" */
	return st;
}

/*
 * The number returned is that of the values filled in; the core takes its cache
 * for fresh only when it is the number of all counters. mlx5 returns that only
 * for index 0 (which is what RDMA netlink asks for, and what reading the file
 * rx_write_requests asks for). For the other plain counters it fills all plain
 * ones and returns their number, so each file read is a new query; for an
 * optional one it fills that one and returns the index.
 */
static int fr_get_hw_stats(struct ib_device *d, struct rdma_hw_stats *st, u32 port, int index)
{
	struct fr_nic *n = nic_of_ib(d);
	struct fr_cnt *c = &n->cnt[n->first[S_HW]];
	int i, from = 0, to, ret;
	u64 now;

	if (!port)
		return -EINVAL;
	called(n, C_HW_STATS);
	stall_hw(n);
	if (index > 0 && index < FR_HW_PLAIN) {
		to = ret = FR_HW_PLAIN;
	} else if (index >= FR_HW_PLAIN && index < FR_HW_ALL) {
		from = index;
		to = index + 1;
		ret = index;
	} else {	/* 0, or FR_HW_ALL as the core asks at registration */
		to = ret = FR_HW_ALL;
	}
	spin_lock_bh(&fr_lock);
	if (failing(n, F_HW))
		ret = failing(n, F_HW);
	now = hw_now(n);
	for (i = from; ret >= 0 && i < to; i++) {
		st->value[i] = cnt_at(&c[i], now);
		if (n->q32 && i < FR_HW_Q)
			st->value[i] = (u32)st->value[i];
	}
	spin_unlock_bh(&fr_lock);
	return ret;
}

static int fr_modify_hw_stat(struct ib_device *d, u32 port, unsigned int index, bool enable)
{
	return 0;
}

/*
 * Queue pairs, and counters of their own. A line of /proc/fakeroce makes a queue
 * pair for the process that writes it, as that process would by uverbs; only
 * that it does not end with the process. It carries nothing.
 *
 * As on mlx5, a counter that queue pairs are bound to is a set of Q counters:
 * the first queue pair takes the lowest set that is free, with all at zero, and
 * what was counted stays in the set when a queue pair leaves it. It is told with
 * the names of all the port's counters (the core reads its values by the port's
 * index); those that are no Q counters stay at zero.
 */
static int fr_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *a, struct ib_udata *u)
{
	qp->qp_num = to_frqp(qp)->number = nic_of_ib(qp->device)->next_qp;
	return 0;
}

static int fr_modify_qp(struct ib_qp *qp, struct ib_qp_attr *a, int mask, struct ib_udata *u)
{
	if (mask & IB_QP_STATE)
		to_frqp(qp)->state = a->qp_state;
	return 0;
}

static int fr_query_qp(struct ib_qp *qp, struct ib_qp_attr *a, int mask, struct ib_qp_init_attr *i)
{
	memset(a, 0, sizeof(*a));
	memset(i, 0, sizeof(*i));
	a->qp_state = to_frqp(qp)->state;
	return 0;
}

static int fr_destroy_qp(struct ib_qp *qp, struct ib_udata *u)
{
	return 0;
}

static int fr_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *qp)
{
	struct fr_nic *n = nic_of_ib(qp->device);
	int id, err = 0;

	spin_lock_bh(&fr_lock);
	if (!counter->id) {
		id = find_next_zero_bit(n->qset_used, FR_QSETS, 1);
		if (id < FR_QSETS) {
			set_bit(id, n->qset_used);
			memset(n->qset[id], 0, sizeof(n->qset[id]));
			counter->id = id;
		} else {
			err = -ENOSPC;
		}
	}
	if (!err)
		qp->counter = counter;
	spin_unlock_bh(&fr_lock);
	return err;
}

static int fr_counter_unbind_qp(struct ib_qp *qp)
{
	spin_lock_bh(&fr_lock);
	qp->counter = NULL;
	spin_unlock_bh(&fr_lock);
	return 0;
}

static int fr_counter_dealloc(struct rdma_counter *counter)
{
	struct fr_nic *n = nic_of_ib(counter->device);

	spin_lock_bh(&fr_lock);
	clear_bit(counter->id, n->qset_used);
	spin_unlock_bh(&fr_lock);
	return 0;
}

static struct rdma_hw_stats *fr_counter_alloc_stats(struct rdma_counter *counter)
{
	return fr_alloc_hw_stats(counter->device, counter->port);
}

static int fr_counter_update_stats(struct rdma_counter *counter)
{
	struct fr_nic *n = nic_of_ib(counter->device);
	int i, err;

	called(n, C_QP_STATS);
	stall_hw(n);
	spin_lock_bh(&fr_lock);
	err = failing(n, F_HW);
	for (i = 0; !err && i < FR_HW_Q; i++)
		counter->stats->value[i] = n->q32 ? (u32)n->qset[counter->id][i] : n->qset[counter->id][i];
	spin_unlock_bh(&fr_lock);
	return err;
}

static u64 fr_clip(u64 v, u64 max)
{
	return v > max ? max : v;
}

/* One file of ports/1/counters is one such request: nothing is cached. */
static int fr_process_mad(struct ib_device *d, int flags, u32 port, const struct ib_wc *wc,
			  const struct ib_grh *grh, const struct ib_mad *in,
			  struct ib_mad *out, size_t *out_size, u16 *pkey_index)
{
	struct fr_nic *n = nic_of_ib(d);
	struct fr_cnt *c = &n->cnt[n->first[S_PMA]];
	u64 now, v[P_NR];
	int i, err;

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_FAILURE;
	if (in->mad_hdr.attr_id != IB_PMA_CLASS_PORT_INFO) {
		called(n, C_PMA);
		stall_hw(n);
	}
	spin_lock_bh(&fr_lock);
	err = failing(n, F_PMA);
	now = hw_now(n);
	for (i = 0; i < P_NR; i++)
		v[i] = cnt_at(&c[i], now);
	spin_unlock_bh(&fr_lock);
	if (err)
		return IB_MAD_RESULT_FAILURE;

	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO: {
		struct ib_class_port_info *cpi = (void *)(out->data + 40);

		cpi->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
		break;
	}
	case IB_PMA_PORT_COUNTERS: {
		struct ib_pma_portcounters *p = (void *)(out->data + 40);

		p->symbol_error_counter = cpu_to_be16(fr_clip(v[P_SYMBOL], U16_MAX));
		p->link_error_recovery_counter = fr_clip(v[P_RECOVERY], U8_MAX);
		p->link_downed_counter = fr_clip(v[P_DOWNED], U8_MAX);
		p->port_rcv_errors = cpu_to_be16(fr_clip(v[P_RCV_ERR], U16_MAX));
		p->port_rcv_remphys_errors = cpu_to_be16(fr_clip(v[P_RCV_PHYS_ERR], U16_MAX));
		p->port_rcv_switch_relay_errors = cpu_to_be16(fr_clip(v[P_SWITCH_ERR], U16_MAX));
		p->port_xmit_discards = cpu_to_be16(fr_clip(v[P_XMIT_DISCARD], U16_MAX));
		p->port_xmit_constraint_errors = fr_clip(v[P_XMIT_CONSTR], U8_MAX);
		p->port_rcv_constraint_errors = fr_clip(v[P_RCV_CONSTR], U8_MAX);
		p->link_overrun_errors = fr_clip(v[P_INTEGRITY], 15) << 4 |
					 fr_clip(v[P_OVERRUN], 15);
		p->vl15_dropped = cpu_to_be16(fr_clip(v[P_VL15], U16_MAX));
		p->port_xmit_data = cpu_to_be32(fr_clip(v[P_XMIT_DATA], U32_MAX));
		p->port_rcv_data = cpu_to_be32(fr_clip(v[P_RCV_DATA], U32_MAX));
		p->port_xmit_packets = cpu_to_be32(fr_clip(v[P_XMIT_PKT], U32_MAX));
		p->port_rcv_packets = cpu_to_be32(fr_clip(v[P_RCV_PKT], U32_MAX));
		p->port_xmit_wait = cpu_to_be32(fr_clip(v[P_XMIT_WAIT], U32_MAX));
		break;
	}
	case IB_PMA_PORT_COUNTERS_EXT: {
		struct ib_pma_portcounters_ext *p = (void *)(out->data + 40);

		p->port_xmit_data = cpu_to_be64(v[P_XMIT_DATA]);
		p->port_rcv_data = cpu_to_be64(v[P_RCV_DATA]);
		p->port_xmit_packets = cpu_to_be64(v[P_XMIT_PKT]);
		p->port_rcv_packets = cpu_to_be64(v[P_RCV_PKT]);
		p->port_unicast_xmit_packets = cpu_to_be64(v[P_UC_XMIT]);
		p->port_unicast_rcv_packets = cpu_to_be64(v[P_UC_RCV]);
		p->port_multicast_xmit_packets = cpu_to_be64(v[P_MC_XMIT]);
		p->port_multicast_rcv_packets = cpu_to_be64(v[P_MC_RCV]);
		break;
	}
	default:
		return IB_MAD_RESULT_FAILURE;
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

static ssize_t hw_rev_show(struct device *dev, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "0\n");
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t hca_type_show(struct device *dev, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "MT%d\n", FR_PART);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *dev, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, FR_BOARD "\n");
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *fr_ib_attrs[] = {
	&dev_attr_hw_rev.attr,
	&dev_attr_hca_type.attr,
	&dev_attr_board_id.attr,
	NULL
};
static const struct attribute_group fr_ib_group = { .attrs = fr_ib_attrs };

static const struct ib_device_ops fr_ib_ops = {
	.owner			= THIS_MODULE,
	/*
	 * libibverbs chooses its half of a driver by this number. siw's asks for
	 * no PCI device and little else, so ibv_devinfo works. rxe's would do as
	 * well, but the kernel's rxe takes every device of that number for one of
	 * its own, and faults; siw is not in Debian's kernel.
	 */
	.driver_id		= RDMA_DRIVER_SIW,
	.uverbs_abi_ver		= 1,
	.device_group		= &fr_ib_group,
	.query_device		= fr_query_device,
	.query_port		= fr_query_port,
	.get_port_immutable	= fr_immutable,
	.get_link_layer		= fr_link_layer,
	.query_pkey		= fr_query_pkey,
	.add_gid		= fr_add_gid,
	.del_gid		= fr_del_gid,
	.get_dev_fw_str		= fr_fw_str,
	.alloc_ucontext		= fr_alloc_ucontext,
	.dealloc_ucontext	= fr_dealloc_ucontext,
	.disassociate_ucontext	= fr_disassociate,
	.alloc_pd		= fr_alloc_pd,
	.dealloc_pd		= fr_dealloc_pd,
	.alloc_hw_port_stats	= fr_alloc_hw_stats,
	.get_hw_stats		= fr_get_hw_stats,
	.modify_hw_stat		= fr_modify_hw_stat,
	.create_qp		= fr_create_qp,
	.modify_qp		= fr_modify_qp,
	.query_qp		= fr_query_qp,
	.destroy_qp		= fr_destroy_qp,
	.counter_bind_qp	= fr_counter_bind_qp,
	.counter_unbind_qp	= fr_counter_unbind_qp,
	.counter_dealloc	= fr_counter_dealloc,
	.counter_alloc_stats	= fr_counter_alloc_stats,
	.counter_update_stats	= fr_counter_update_stats,
	.process_mad		= fr_process_mad,
	.size_ib_ucontext	= sizeof(struct ib_ucontext),
	.size_ib_pd		= sizeof(struct ib_pd),
	INIT_RDMA_OBJ_SIZE(ib_qp, fr_qp, qp),
};

static struct ib_device *fr_ib_add(struct fr_nic *n)
{
	struct fr_ibdev *f = ib_alloc_device(fr_ibdev, ibdev);
	char name[IB_DEVICE_NAME_MAX];
	int err;

	if (!f)
		return ERR_PTR(-ENOMEM);
	f->nic = n;
	f->ibdev.node_type = RDMA_NODE_IB_CA;
	f->ibdev.phys_port_cnt = 1;
	f->ibdev.num_comp_vectors = channels;
	f->ibdev.dev.parent = &n->pdev->dev;
	snprintf(f->ibdev.node_desc, sizeof(f->ibdev.node_desc), "fakeroce %u", n->id);
	addrconf_addr_eui48((u8 *)&f->ibdev.node_guid, n->ndev->dev_addr);
	ib_set_device_ops(&f->ibdev, &fr_ib_ops);
	snprintf(name, sizeof(name), "mlx5_%u", n->id);
	err = ib_device_set_netdev(&f->ibdev, n->ndev, 1);
	if (!err)
		err = ib_register_device(&f->ibdev, name, NULL);
	if (err) {
		ib_dealloc_device(&f->ibdev);
		return ERR_PTR(err);
	}
	return &f->ibdev;
}

/* Exported for ib_uverbs, and declared in the core's own header only (drivers/infiniband/core/core_priv.h) */
struct ib_qp *ib_create_qp_user(struct ib_device *dev, struct ib_pd *pd,
				struct ib_qp_init_attr *attr, struct ib_udata *udata,
				struct ib_uqp_object *uobj, const char *caller);

/* The queue pairs that lines of /proc/fakeroce made. fr_nics_lock is held. */

static struct fr_qp *qp_find(struct fr_nic *n, u32 number)
{
	struct fr_qp *q;

	list_for_each_entry(q, &n->qps, list)
		if (q->number == number)
			return q;
	return NULL;
}

static void qp_unmake(struct fr_qp *q)
{
	struct ib_pd *pd = q->qp.pd;

	list_del(&q->list);
	ib_destroy_qp(&q->qp);
	ib_dealloc_pd(pd);
}

static int qp_make(struct fr_nic *n, u32 number, const char *type)
{
	struct ib_qp_init_attr init = { .cap = { .max_send_wr = 1, .max_recv_wr = 1 } };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	/* that it is there makes the queue pair the process's and not the kernel's */
	struct ib_udata user = {};
	struct ib_pd *pd;
	struct ib_qp *qp;
	int err;

	if (!strcmp(type, "RC"))
		init.qp_type = IB_QPT_RC;
	else if (!strcmp(type, "UD"))
		init.qp_type = IB_QPT_UD;
	else
		return -EINVAL;
	if (!number || qp_find(n, number))
		return -EEXIST;
	pd = ib_alloc_pd(n->ibdev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	n->next_qp = number;
	qp = ib_create_qp_user(n->ibdev, pd, &init, &user, NULL, NULL);
	if (IS_ERR(qp)) {
		ib_dealloc_pd(pd);
		return PTR_ERR(qp);
	}
	/* uverbs counts its queue pairs itself, and the core takes them off at the end */
	if (!atomic_read(&pd->usecnt))
		atomic_inc(&pd->usecnt);
	list_add_tail(&to_frqp(qp)->list, &n->qps);
	/* here the kernel binds it to a counter, if it is to */
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   (init.qp_type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS));
	if (err)
		qp_unmake(to_frqp(qp));
	return err;
}

/* Counts more on a queue pair: in the set of its counter, or in the port's. */
static int qp_count(struct fr_nic *n, u32 number, const char *name, u64 more)
{
	struct fr_qp *q = qp_find(n, number);
	int i;

	if (!q)
		return -ENOENT;
	for (i = 0; i < FR_HW_Q; i++)
		if (!strcmp(fr_hw_desc[i].name, name))
			break;
	if (i == FR_HW_Q)
		return -ENOENT;
	spin_lock_bh(&fr_lock);
	if (q->qp.counter)
		n->qset[q->qp.counter->id][i] += more;
	else
		n->cnt[n->first[S_HW] + i].base += more;
	spin_unlock_bh(&fr_lock);
	return 0;
}

/* ---- plugging and unplugging ------------------------------------------------------- */

static struct fr_nic *nic_make(unsigned int id)
{
	u8 mac[ETH_ALEN] = { 0x02, 0x66, 0x72, 0, 0, id };
	struct platform_device *pdev;
	struct ib_device *ibdev;
	struct net_device *dev;
	struct fr_nic *n;
	int err, i;

	pdev = platform_device_register_simple(FR_DRIVER, id, NULL, 0);
	if (IS_ERR(pdev))
		return ERR_CAST(pdev);
	dev = alloc_etherdev_mqs(sizeof(*n), channels, channels);
	if (!dev) {
		err = -ENOMEM;
		goto no_dev;
	}
	n = netdev_priv(dev);
	n->id = id;
	n->ndev = dev;
	n->pdev = pdev;
	init_waitqueue_head(&n->stall_wq);
	INIT_LIST_HEAD(&n->qps);
	n->link = true;
	n->speed = speed;
	n->pfc_en = pfc;
	n->pfc_delay = 7;		/* mlx5: the cable's metres, 7 by default */
	n->storm_tout = 8000;
	n->peer_pfc = FR_NO_PEER;
	n->fw_sub = FR_FW_SUB;
	n->module_rx_uw = 900;
	n->fec = ETHTOOL_FEC_RS;
	n->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	n->ets.ets_cap = IEEE_8021QAZ_MAX_TCS;
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		n->ets.prio_tc[i] = i;
		n->ets.tc_tsa[i] = IEEE_8021QAZ_TSA_ETS;
		n->ets.tc_tx_bw[i] = i < 4 ? 13 : 12;
	}
	n->buf.buffer_size[0] = 262016;
	n->buf.total_size = 524160;
	err = nic_counters(n);
	if (err)
		goto no_netdev;

	SET_NETDEV_DEV(dev, &pdev->dev);
	snprintf(dev->name, IFNAMSIZ, "rail%u", id);
	dev->netdev_ops = &fr_netdev_ops;
	dev->ethtool_ops = &fr_ethtool_ops;
	dev->dcbnl_ops = &fr_dcb_ops;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = 9978;
	eth_hw_addr_set(dev, mac);
	netif_carrier_off(dev);
	err = register_netdev(dev);
	if (err)
		goto no_netdev;
	ibdev = fr_ib_add(n);
	if (IS_ERR(ibdev)) {
		err = PTR_ERR(ibdev);
		goto no_ibdev;
	}
	spin_lock_bh(&fr_lock);
	n->ibdev = ibdev;
	spin_unlock_bh(&fr_lock);
	return n;
no_ibdev:
	unregister_netdev(dev);
no_netdev:
	kvfree(n->cnt);
	free_netdev(dev);
no_dev:
	platform_device_unregister(pdev);
	return ERR_PTR(err);
}

/*
 * Nobody finds the NIC in fr_nics any more. Both unregister functions wait
 * until every call into the driver has returned, stalled ones included; only
 * then is what those calls use freed.
 */
static void nic_free(struct fr_nic *n)
{
	struct platform_device *pdev = n->pdev;
	struct ib_device *ibdev;

	while (!list_empty(&n->qps))
		qp_unmake(list_first_entry(&n->qps, struct fr_qp, list));
	/* no event may be dispatched for a device that is being unregistered */
	spin_lock_bh(&fr_lock);
	ibdev = n->ibdev;
	n->ibdev = NULL;
	spin_unlock_bh(&fr_lock);
	ib_unregister_device(ibdev);
	unregister_netdev(n->ndev);
	ib_dealloc_device(ibdev);
	kvfree(n->cnt);
	free_netdev(n->ndev);		/* n lies in it */
	platform_device_unregister(pdev);
}

static int plug(unsigned int id)
{
	struct fr_nic *n;

	if (id >= FR_MAX)
		return -EINVAL;
	if (test_and_set_bit(id, fr_taken))
		return -EEXIST;
	n = nic_make(id);
	if (IS_ERR(n)) {
		clear_bit(id, fr_taken);
		return PTR_ERR(n);
	}
	mutex_lock(&fr_nics_lock);
	fr_nics[id] = n;
	mutex_unlock(&fr_nics_lock);
	return 0;
}

static int unplug(unsigned int id)
{
	struct fr_nic *n;

	if (id >= FR_MAX)
		return -EINVAL;
	mutex_lock(&fr_nics_lock);
	n = fr_nics[id];
	fr_nics[id] = NULL;
	mutex_unlock(&fr_nics_lock);
	if (!n)
		return -ENODEV;
	nic_free(n);
	clear_bit(id, fr_taken);
	return 0;
}

/* ---- /proc/fakeroce ------------------------------------------------------------------ */

/* One parsed line. knob is N_NR for a counter; cnt is -1 for all of them. */
struct fr_op {
	struct fr_nic *nic;
	enum fr_knob knob;
	int cnt;
	bool relative, keep_rate;
	u64 value, rate;
};

/* the section's name may stand before the counter's, with a dot */
static int cnt_find(const struct fr_nic *n, const char *name)
{
	const char *dot = strchr(name, '.');
	int s, i, from = 0, to = n->ncnt, found = -ENOENT;

	if (dot) {
		for (s = 0; s < S_NR; s++)
			if (strlen(fr_sect_name[s]) == dot - name &&
			    !strncmp(fr_sect_name[s], name, dot - name))
				break;
		if (s == S_NR)
			return -ENOENT;
		from = n->first[s];
		to = n->first[s + 1];
		name = dot + 1;
	}
	for (i = from; i < to; i++) {
		if (strcmp(n->cnt[i].name, name))
			continue;
		if (found >= 0)
			return -ENOTUNIQ;
		found = i;
	}
	return found;
}

static struct fr_nic *nic_find(const char *name)
{
	unsigned int id;

	if (strncmp(name, "mlx5_", 5) || kstrtouint(name + 5, 10, &id) || id >= FR_MAX)
		return NULL;
	return fr_nics[id];
}

/* Splits a line at blanks. Returns how many words there are; more than max is max + 1. */
static int words(char *line, char **w, int max)
{
	char *t;
	int k = 0;

	while ((t = strsep(&line, " \t\r"))) {
		if (!*t)
			continue;
		if (k == max)
			return max + 1;
		w[k++] = t;
	}
	return k;
}

static int op_parse(struct fr_op *op, char **w, int k)
{
	char *value;
	int i;

	memset(op, 0, sizeof(*op));
	op->knob = N_NR;
	if (!strcmp(w[0], "rate_all")) {	/* rate_all mlx5_0 RATE */
		if (k != 3)
			return -EINVAL;
		op->nic = nic_find(w[1]);
		op->cnt = -1;
		op->relative = true;
		return op->nic ? kstrtou64(w[2], 0, &op->rate) : -ENODEV;
	}
	op->nic = nic_find(w[0]);
	if (!op->nic)
		return -ENODEV;
	if (k < 3)
		return -EINVAL;
	if (w[1][0] == '!') {			/* mlx5_0 !KNOB VALUE */
		for (i = 0; i < N_NR; i++)
			if (!strcmp(fr_knob[i].name, w[1] + 1))
				break;
		if (i == N_NR)
			return -ENOENT;
		if (k != 3 || kstrtou64(w[2], 0, &op->value))
			return -EINVAL;
		op->knob = i;
		return op->value > fr_knob[i].max ? -ERANGE : 0;
	}
	/* mlx5_0 COUNTER [+]VALUE [RATE] */
	op->cnt = cnt_find(op->nic, w[1]);
	if (op->cnt < 0)
		return op->cnt;
	value = w[2];
	op->relative = *value == '+';
	op->keep_rate = op->relative && k == 3;
	if (kstrtou64(value + op->relative, 0, &op->value))
		return -EINVAL;
	return k == 4 ? kstrtou64(w[3], 0, &op->rate) : 0;
}

static void cnt_apply(struct fr_cnt *c, const struct fr_op *op, u64 now)
{
	c->base = op->value + (op->relative ? cnt_at(c, now) : 0);
	c->t0 = now;
	if (!op->keep_rate)
		c->rate = op->rate;
}

/* fr_lock is held, and rtnl if the knob is one of those that change the strings */
static void op_apply(const struct fr_op *op, u64 now)
{
	struct fr_nic *n = op->nic;
	u64 v = op->value;
	int i;

	switch (op->knob) {
	case N_CARRIER:
		nic_set_link(n, v, now);
		break;
	case N_SPEED:
		WRITE_ONCE(n->speed, v);
		break;
	case N_PFC_EN:
		n->pfc_en = v;
		break;
	case N_PAUSE:
		n->rx_pause = v & 1;
		n->tx_pause = v & 2;
		break;
	case N_STALL:
	case N_STALL_ETH:
	case N_STALL_HW:
		if (op->knob != N_STALL_HW)
			WRITE_ONCE(n->stall_eth_ms, v);
		if (op->knob != N_STALL_ETH)
			WRITE_ONCE(n->stall_hw_ms, v);
		wake_up_all(&n->stall_wq);
		break;
	case N_FAIL ... N_FAIL_PMA:
		for (i = 0; i < F_NR; i++)
			if (fr_knob[op->knob].fails & BIT(i))
				WRITE_ONCE(n->fail[i], v);
		break;
	case N_FREEZE_ETH:
		n->freeze_eth = v ? now : 0;
		break;
	case N_FREEZE_HW:
		n->freeze_hw = v ? now : 0;
		break;
	case N_Q32:
		n->q32 = v;
		break;
	case N_PFC_FLAP:
		n->pfc_flap = v;
		break;
	case N_STORM_TOUT:
		WRITE_ONCE(n->storm_tout, v);
		break;
	case N_PEER_PFC:
		WRITE_ONCE(n->peer_pfc, v);
		break;
	case N_LANES:
		WRITE_ONCE(n->lanes, v);
		break;
	case N_FW_SUB:
		WRITE_ONCE(n->fw_sub, v);
		break;
	case N_MODULE_CELSIUS:
		WRITE_ONCE(n->module_celsius, v);
		break;
	case N_MODULE_RX_UW:
		WRITE_ONCE(n->module_rx_uw, v);
		break;
	case N_NR:
		if (op->cnt >= 0)
			cnt_apply(&n->cnt[op->cnt], op, now);
		else
			for (i = 0; i < n->ncnt; i++)
				cnt_apply(&n->cnt[i], op, now);
		break;
	}
}

/*
 * Applies lines[0..count) as one: nothing of them if one is wrong, and
 * otherwise all at the same instant.
 */
static int apply_lines(char **lines, int count)
{
	struct fr_op *ops;
	bool rtnl = false;
	int i, err = 0, nops = 0;
	u64 now;

	if (!count)
		return 0;
	ops = kvmalloc_array(count, sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		rtnl |= strstr(lines[i], "!pfc_en") || strstr(lines[i], "!pause");
	if (rtnl)
		rtnl_lock();
	mutex_lock(&fr_nics_lock);
	for (i = 0; i < count && !err; i++) {
		char *w[4];
		int k = words(lines[i], w, 4);

		if (!k || w[0][0] == '#')
			continue;
		err = k > 4 ? -EINVAL : op_parse(&ops[nops++], w, k);
	}
	if (!err) {
		spin_lock_bh(&fr_lock);
		now = ktime_get_ns();
		for (i = 0; i < nops; i++)
			op_apply(&ops[i], now);
		spin_unlock_bh(&fr_lock);
	}
	mutex_unlock(&fr_nics_lock);
	if (rtnl)
		rtnl_unlock();
	kvfree(ops);
	return err;
}

/* Lines about queue pairs, which sleep as well */
static int qp_line(const char *line)
{
	char what[8], name[ETH_GSTRING_LEN], more;
	unsigned int id, number;
	struct fr_nic *n;
	u64 count;
	int k, err = -EINVAL;

	k = sscanf(line, " %7s mlx5_%u %u %31s %llu %c", what, &id, &number, name, &count, &more);
	if (k < 3 || id >= FR_MAX)
		return err;
	mutex_lock(&fr_nics_lock);
	n = fr_nics[id];
	if (!n)
		err = -ENODEV;
	else if (!strcmp(what, "qp") && k == 4)
		err = qp_make(n, number, name);
	else if (!strcmp(what, "unqp") && k == 3) {
		struct fr_qp *q = qp_find(n, number);

		err = q ? 0 : -ENOENT;
		if (q)
			qp_unmake(q);
	} else if (!strcmp(what, "qpcount") && k == 5)
		err = qp_count(n, number, name, count);
	mutex_unlock(&fr_nics_lock);
	return err;
}

static bool is_qp_line(const char *line)
{
	line = skip_spaces(line);
	return !strncmp(line, "qp ", 3) || !strncmp(line, "unqp ", 5) || !strncmp(line, "qpcount ", 8);
}

static bool plug_line(const char *line, int *err)
{
	unsigned int id;
	char more;

	if (sscanf(line, " plug %u %c", &id, &more) == 1)
		*err = plug(id);
	else if (sscanf(line, " unplug %u %c", &id, &more) == 1)
		*err = unplug(id);
	else if (is_qp_line(line))
		*err = qp_line(line);
	else
		return false;
	return true;
}

static bool is_plug_line(const char *line)
{
	if (is_qp_line(line))
		return true;
	line = skip_spaces(line);
	return !strncmp(line, "plug ", 5) || !strncmp(line, "unplug ", 7);
}

static ssize_t fr_write(struct file *file, const char __user *ubuf, size_t len, loff_t *off)
{
	int i, from = 0, count = 0, max = 2, err = 0;
	char *buf, *rest, **lines;

	if (len > FR_WRITE_MAX)
		return -EFBIG;
	buf = memdup_user_nul(ubuf, len);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	for (i = 0; i < len; i++)
		max += buf[i] == '\n' || buf[i] == ';';
	lines = kvmalloc_array(max, sizeof(*lines), GFP_KERNEL);
	if (!lines) {
		kfree(buf);
		return -ENOMEM;
	}
	rest = buf;
	while ((lines[count] = strsep(&rest, "\n;")))
		count++;
	/* plug and unplug sleep, so they divide the write into parts */
	for (i = 0; i < count && !err; i++) {
		if (!is_plug_line(lines[i]))
			continue;
		err = apply_lines(lines + from, i - from);
		if (!err && !plug_line(lines[i], &err))
			err = -EINVAL;
		from = i + 1;
	}
	if (!err)
		err = apply_lines(lines + from, count - from);
	kvfree(lines);
	kfree(buf);
	return err ? err : len;
}

static int fr_calls_show(struct seq_file *m, void *unused)
{
	int i, c;

	mutex_lock(&fr_nics_lock);
	for (i = 0; i < FR_MAX; i++) {
		if (!fr_nics[i])
			continue;
		seq_printf(m, "mlx5_%d", i);
		for (c = 0; c < C_NR; c++)
			seq_printf(m, " %s %d", fr_call_name[c], atomic_read(&fr_nics[i]->calls[c]));
		seq_printf(m, " stalled_eth_ns %lld stalled_hw_ns %lld\n",
			   atomic64_read(&fr_nics[i]->stalled_eth_ns),
			   atomic64_read(&fr_nics[i]->stalled_hw_ns));
	}
	mutex_unlock(&fr_nics_lock);
	return 0;
}

static int fr_calls_open(struct inode *inode, struct file *file)
{
	return single_open(file, fr_calls_show, NULL);
}

/*
 * The truth, whatever a stall, failure or freeze lets a reader see. One call
 * fills one buffer (the seq_file core calls again with a larger one if it has
 * to, from the start), so that the whole text is of one instant.
 */
static int fr_values_show(struct seq_file *m, void *unused)
{
	int i, k;
	u64 now;

	mutex_lock(&fr_nics_lock);
	spin_lock_bh(&fr_lock);
	now = ktime_get_ns();
	seq_printf(m, "now_ns %llu\n", now);
	for (i = 0; i < FR_MAX; i++) {
		struct fr_nic *n = fr_nics[i];

		for (k = 0; n && k < n->ncnt && !seq_has_overflowed(m); k++) {
			const struct fr_cnt *c = &n->cnt[k];

			seq_printf(m, "mlx5_%d %s.%s %llu %llu\n", i, fr_sect_name[c->sect],
				   c->name, cnt_at(c, now), c->rate);
		}
	}
	spin_unlock_bh(&fr_lock);
	mutex_unlock(&fr_nics_lock);
	return 0;
}

static int fr_values_open(struct inode *inode, struct file *file)
{
	return single_open(file, fr_values_show, NULL);
}

static const struct proc_ops fr_calls_ops = {
	.proc_open	= fr_calls_open,
	.proc_read	= seq_read,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
	.proc_write	= fr_write,
};

static const struct proc_ops fr_values_ops = {
	.proc_open	= fr_values_open,
	.proc_read	= seq_read,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
};

/* ---- module ---------------------------------------------------------------------------- */

/* The driver does nothing: it is there for the "driver" link of the devices. */
static int fr_probe(struct platform_device *pdev)
{
	return 0;
}

static struct platform_driver fr_driver = {
	.driver.name		= FR_DRIVER,
	/* a NIC comes and goes by plug and unplug only */
	.driver.suppress_bind_attrs = true,
	.probe			= fr_probe,
};

static int __init fr_init(void)
{
	int i, err;

	if (nics > FR_MAX || channels < 1 || channels > 256 || pfc > 0xff)
		return -EINVAL;
	err = platform_driver_register(&fr_driver);
	if (err)
		return err;
	for (i = 0; i < nics && !err; i++)
		err = plug(i);
	if (!err && (!proc_create("fakeroce", 0644, NULL, &fr_calls_ops) ||
		     !proc_create("fakeroce_values", 0444, NULL, &fr_values_ops)))
		err = -ENOMEM;
	if (!err)
		return 0;
	remove_proc_subtree("fakeroce", NULL);
	for (i = 0; i < FR_MAX; i++)
		unplug(i);
	platform_driver_unregister(&fr_driver);
	return err;
}

static void __exit fr_exit(void)
{
	int i;

	remove_proc_entry("fakeroce_values", NULL);
	remove_proc_entry("fakeroce", NULL);
	for (i = 0; i < FR_MAX; i++)
		unplug(i);
	platform_driver_unregister(&fr_driver);
}

module_init(fr_init);
module_exit(fr_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("RoCE NICs without hardware, for tests");
MODULE_SOFTDEP("pre: ib_uverbs");
