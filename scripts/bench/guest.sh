# Runs in the guest (scripts/bench-guest): the peers at once on the kernel's own sysfs and netlink, and what they take in turns of
# seconds in which nobody asks and seconds with a scrape each.
set -eu
cd /root
mkdir -p netdata /usr/lib/netdata/conf.d /usr/share/netdata/web
cp /host/netdata.conf netdata/
export LD_LIBRARY_PATH=/host/lib
/host/rocewatch run --config /host/rocewatch.toml --listen 127.0.0.1:14791 2>/out/rocewatch.log & rocewatch=$!
/host/node_exporter "$@" 2>/out/node_exporter.log & node_exporter=$!
/host/netdata -D -c netdata/netdata.conf >/out/netdata.log 2>&1 & netdata=$!

get() {
	exec 7<>"/dev/tcp/127.0.0.1/$1"
	printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&7
	cat <&7
	exec 7<&-
}
scrape() {
	get 14791 /metrics >/out/rocewatch
	get 9100 /metrics >/out/node_exporter
	get 19999 "$NETDATA_PAGE" >/out/netdata
}
# Hundredths of seconds of all threads, those that have ended included: utime and stime of proc(5).
cpu() {
	local fields
	read -ra fields <"/proc/$1/stat"
	echo $((fields[13] + fields[14]))
}
# take PHASE SCRAPES COMMAND... : a line for each peer: phase, peer, hundredths of seconds, seconds, scrapes.
take() {
	local phase=$1 scrapes=$2 began peer before=()
	shift 2
	began=$EPOCHREALTIME
	for peer in rocewatch node_exporter netdata; do before+=("$(cpu "${!peer}")"); done
	"$@"
	for peer in rocewatch node_exporter netdata; do
		echo "$phase $peer $(($(cpu "${!peer}") - before[0])) $(((${EPOCHREALTIME/./} - ${began/./}) / 1000)) $scrapes"
		before=("${before[@]:1}")
	done
}
scrapes() { for _ in {1..10}; do sleep 1; scrape; done; }

sleep 25
scrape
get 14791 /api/v1/ports | sed '1,/^\r$/d' >/out/ports.json
for _ in {1..3}; do
	take unasked 0 sleep 20
	take scraped 10 scrapes
done
kill "$rocewatch" "$node_exporter" "$netdata"
