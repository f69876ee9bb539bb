/**
 * Loaded into a server before its own code: watches its event loop and answers `loopDelay` over the channel to the
 * bench.
 */
import cluster from 'node:cluster';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

// The server's threads and the processes that it starts load it, too: nobody asks for theirs, and a timer of a
// millisecond in each takes its share of the processor.
if (isMainThread && cluster.isPrimary) {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  process.on('message', (requested) => {
    if (requested !== 'loopDelay') return;
    process.send?.(delays.max / 1e6);
    delays.reset();
  });
  process.channel?.unref();
}
