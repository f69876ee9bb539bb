/** All that runs by itself is in one list (docs/process-managers.md#what-runs-by-itself). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import { startService } from '../support/service/service.js';

const test = suite('service/background');
const PAGE = readFileSync(new URL('../../../docs/process-managers.md', import.meta.url), 'utf8');

/** First column of the list; in the rows of an engine's own thread, only embedded. */
function listed(): string[] {
  const [, list = ''] = PAGE.split('## What runs by itself\n');
  const rows = (list.split('\n## ')[0] ?? '').matchAll(/^\| `([^`]+)` \|/gm);
  return [...rows].flatMap(([, part = '']) => part).sort();
}

test('names each follower of a sandbox with all roles', async () => {
  const service = await startService({ env: { SANDBOX: '1' } });
  try {
    const { text } = await service.ask('GET', '/metrics');
    const samples = text.matchAll(/^gift_follower_failing\{part="([^"]+)"\}/gm);
    // The projector's thread follows the sandbox's clock, too.
    const running = [...new Set([...samples].flatMap(([, part = '']) => part))];
    const onThread = running.includes("the projector's thread");
    assert.deepEqual(
      running.sort(),
      listed().filter((part) => onThread || part !== "the projector's thread"),
    );
  } finally {
    await service.close();
  }
});

test.run();
