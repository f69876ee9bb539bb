/** The metrics of several processes that serve behind one port, on one page. */
import { AggregatorRegistry } from 'prom-client';

/** The metrics of a process as plain data, in the form of `prom-client`, which another process can show. */
export type MetricValues = readonly object[];

interface ProcessShown {
  readonly number: number;
  readonly serves: boolean;
  readonly deaths: number;
}

/** Label that each value has beside its own: a count goes on from 0 where its process died, as counters may. */
export const PROCESS_LABEL = 'process_number';

/** @param values of each process that serves, with its number as a label */
export async function textOfAll(values: readonly MetricValues[], processes: readonly ProcessShown[]): Promise<string> {
  const own = (name: string, type: 'gauge' | 'counter', help: string, read: (of: ProcessShown) => number): object => ({
    name,
    type,
    help,
    aggregator: 'sum',
    values: processes.map((one) => ({ labels: { [PROCESS_LABEL]: one.number }, value: read(one) })),
  });
  const ofProcesses = [
    own('gift_process_serves', 'gauge', 'Whether the process of this number serves and answers: 1 or 0', ({ serves }) =>
      Number(serves),
    ),
    own(
      'gift_process_deaths_total',
      'counter',
      'Processes of this number that died and were started again',
      ({ deaths }) => deaths,
    ),
  ];
  return AggregatorRegistry.aggregate([ofProcesses, ...values]).metrics();
}
