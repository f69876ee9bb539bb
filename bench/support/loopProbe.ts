/** Loaded into a server before its own code: watches its event loop and answers `loopDelay` over the channel to the bench. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const delays = monitorEventLoopDelay({ resolution: 1 });
delays.enable();
process.on('message', (asked) => {
  if (asked !== 'loopDelay') return;
  process.send?.({ max: delays.max / 1e6, p99: delays.percentile(99) / 1e6 });
  delays.reset();
});
process.channel?.unref();
