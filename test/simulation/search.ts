/**
 * Runs seeds one after the other in one process, which is warm after the first, and prints a line for each seed and
 * finding, until it is ended: `node dist/test/simulation/search.js SEED VIRTUAL_MINUTES`. For the back-test.
 */
import { simulate } from './simulate.js';

const [first = '1', minutes = '1'] = process.argv.slice(2);
const print = (line: string): void => void process.stdout.write(`${line.split('\n', 1)[0] ?? ''}\n`);

for (let seed = Number(first); ; seed++) {
  try {
    const { findings } = await simulate({ seed, forMs: Number(minutes) * 60_000 });
    for (const { rule, text } of findings) print(`FINDING ${rule}: ${text}`);
  } catch (error) {
    print(`FINDING failed: ${String(error).replace(`seed ${seed}`, 'the seed')}`);
  }
  print(`SEED ${seed}`);
}
