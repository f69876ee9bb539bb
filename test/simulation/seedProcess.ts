/** Runs each seed that its parent sends, and sends back what it shows: a process is warm after the first. */
import { reportOf, reportOfTwo } from './seedReport.js';
import type { SeedOrder } from './manySeeds.js';

process.on('message', ({ twice, ...order }: SeedOrder) => {
  void (twice ? reportOfTwo(order) : reportOf(order)).then((report) => process.send?.(report));
});
