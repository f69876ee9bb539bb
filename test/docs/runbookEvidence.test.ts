import assert from 'node:assert/strict';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import { eventually } from '../support/assertions/until.js';
import { untilReady } from '../support/service/service.js';
import { buyInto, inTrouble } from '../support/service/trouble.js';

const test = suite('runbook: evidence');
const OFTEN = { SEAL_EVERY_MS: '100' };

test('altered log: found at the next start of the keeper, and named', async () => {
  await inTrouble('Altered log', {}, async (trouble) => {
    const first = await trouble.start({ ...OFTEN, SEAL_PUBLIC: '1' });
    const { url = '' } = first;
    await untilReady(url);
    await buyInto(trouble, url);
    const file = join(trouble.env['DATA_DIR'] ?? '', 'events.db');
    const purchase = await purchaseIn(file);
    await eventually(async () => Number((await (await fetch(`${url}/checkpoint`)).text()).split('\n')[1]) >= purchase);
    await first.end('SIGKILL');
    const database = new Database(file);
    const { changes } = database
      .prepare(`UPDATE events SET data = replace(data, 'latte', 'mocha') WHERE type = 'GiftsPurchased'`)
      .run();
    database.close();
    assert.equal(changes, 1);
    const again = await trouble.start(OFTEN);
    await untilReady(again.url ?? '');
    await eventually(async () => /^gift_log_altered 1$/m.test(await (await fetch(`${again.url}/metrics`)).text()));
    await trouble.follow();
  });
});

/** The number of its event in the log. */
async function purchaseIn(file: string): Promise<number> {
  const database = new Database(file, { readonly: true });
  try {
    const found = database.prepare<[], { position: number }>(
      `SELECT position FROM events WHERE type = 'GiftsPurchased'`,
    );
    return await eventually(async () => found.get()?.position);
  } finally {
    database.close();
  }
}

test.run();
