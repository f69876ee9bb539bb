/**
 * Runs seeds one after the other in one process, which is warm after the first, and prints a line for each seed and
 * finding, until it is ended: `node dist/test/simulation/search.js SEED VIRTUAL_MINUTES`. For the back-test.
 */
import { reportOf } from './seedReport.js';

const [first = '1', minutes = '1'] = process.argv.slice(2);
const print = (line: string): void => void process.stdout.write(`${line.split('\n', 1)[0] ?? ''}\n`);

for (let seed = Number(first); ; seed++) {
  const { findings } = await reportOf({ seed, forMs: Number(minutes) * 60_000 });
  for (const { rule, text } of findings) print(`FINDING ${rule}: ${text.replace(`seed ${seed}`, 'the seed')}`);
  print(`SEED ${seed}`);
}
