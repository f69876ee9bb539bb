/** Metrics of the Node process, under the names that dashboards for Node know. */
import { statfs } from 'node:fs/promises';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { Exposition } from './exposition.js';

/** Milliseconds between two measurements of the event loop's delay; each wakes the process up. */
const RESOLUTION_MS = 50;
/** Milliseconds after the metrics were read for which the delay is measured: longer than the pauses of any reader. */
const MEASURED_MS = 300_000;
const NANOSECONDS = 1e9;

export interface ProcessOptions {
  readonly version: string;
  readonly dataDir: string;
}

export function showProcess(show: Exposition, { version, dataDir }: ProcessOptions): { close(): void } {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  let utilization = performance.eventLoopUtilization();
  let end: NodeJS.Timeout | undefined;

  /** Measures the delay from now on, until nobody has read it for a while. */
  function measure(): void {
    clearTimeout(end);
    end = setTimeout(stop, MEASURED_MS).unref();
    delay.reset();
    delay.enable();
  }

  function stop(): void {
    delay.disable();
    delay.reset();
  }

  const lag = (name: string, words: string, read: (one: IntervalHistogram) => number): void => {
    show.gauge(
      {
        name: `nodejs_eventloop_lag_${name}_seconds`,
        help: `${words} delay of the event loop since it was last asked`,
      },
      () => [[[], seconds(read(delay))]],
    );
  };
  lag('mean', 'Mean', (one) => one.mean);
  lag('p50', 'Median', (one) => one.percentile(50));
  lag('p99', '99th percentile of the', (one) => one.percentile(99));
  lag('max', 'Longest', (one) => one.max);
  show.gauge(
    {
      name: 'nodejs_eventloop_utilization',
      help: 'Share of time that the event loop was busy since it was last asked',
    },
    () => {
      const now = performance.eventLoopUtilization();
      const since = performance.eventLoopUtilization(now, utilization);
      utilization = now;
      // Metrics are read in the order of their registration, within one turn: this one comes after the delays.
      measure();
      return [[[], since.utilization]];
    },
  );

  show.gauge({ name: 'process_resident_memory_bytes', help: 'Resident memory' }, () => [
    [[], process.memoryUsage.rss()],
  ]);
  show.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'Heap of the main thread in use' }, () => [
    [[], process.memoryUsage().heapUsed],
  ]);
  show.counter({ name: 'process_cpu_seconds_total', help: 'Processor time, user and system' }, () => {
    const { user, system } = process.cpuUsage();
    return [[[], (user + system) / 1e6]];
  });
  const startedAt = Math.round(performance.timeOrigin / 1000);
  show.gauge({ name: 'process_start_time_seconds', help: 'When the process was started, since the epoch' }, () => [
    [[], startedAt],
  ]);
  show.gauge({ name: 'gift_build_info', help: "The service's version; always 1", labels: ['version', 'node'] }, () => [
    [[version, process.version], 1],
  ]);
  show.gauge({ name: 'gift_data_dir_free_bytes', help: 'Space left for us on the disk of DATA_DIR' }, async () => {
    try {
      const { bavail, bsize } = await statfs(dataDir);
      return [[[], bavail * bsize]];
    } catch {
      // The engine that uses the folder reports the fault.
      return [];
    }
  });
  return {
    close() {
      clearTimeout(end);
      stop();
    },
  };
}

/** Delay is the time between two ticks of a timer, less its period. 0 before the first measurement. */
function seconds(nanoseconds: number): number {
  return Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS / 1000) : 0;
}
