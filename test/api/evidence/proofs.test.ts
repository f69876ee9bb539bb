import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { headKeys } from '../../../src/ops/evidence/heads/signedHeads.js';
import { parseBundle, type ProofBundle, type ProvenEvent } from '../../../src/ops/evidence/format/proofBundle.js';
import { unharmed } from '../../support/service/answers.js';
import { gift } from '../../support/service/cli.js';
import { buy, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const KEY = 'the key of the tests has thirty-two bytes at least';
const TREE = mkdtempSync(join(tmpdir(), 'proofs-'));

const test = suite('proofs over HTTP');
let service: Service;
let gifts: string[] = [];
let redemption = '';

test.before(async () => {
  service = await startService({ env: { SEAL_EVERY_MS: '100', SEAL_KEY: KEY, SEAL_DIR: TREE } });
  gifts = await buy(service, 'latte', [{ user_id: 'bob' }, {}]);
  redemption = (await redeem(service, gifts[0] ?? '')).json.data.id as string;
});
test.after(async () => {
  await unharmed(service);
  await service.close();
  rmSync(TREE, { recursive: true });
});

const ask = async (path: string, user: string): Promise<Reply> =>
  service.ask('GET', path, { token: await service.userToken(user) });

/** Checked as anybody checks it. */
async function checked({ text }: Reply): Promise<ProofBundle> {
  const file = join(TREE, 'proof.json');
  writeFileSync(file, text);
  const [key = ''] = headKeys([KEY], `localhost/log/${service.events.logId}`).verifierKeys;
  const { code, err } = await gift({}, ['audit', 'check', file, '--key', key]);
  assert.equal(code, 0, err);
  return parseBundle(text);
}

const typesOf = ({ events }: ProofBundle): string[] => events.map(({ type }) => type);

function namesShown({ data }: ProvenEvent): string[] {
  assert.ok('value' in data);
  const shown = new Set(data.shown.map(({ name }) => name));
  return Object.keys(data.value).filter((name) => !data.apart.includes(name) || shown.has(name));
}

test('prove the events of a gift to auditors alone', async () => {
  const path = `/ops/gifts/${gifts[0]}/proof`;
  const bundle = await eventually(async () => {
    const reply = await ask(path, 'aud');
    return reply.status === 200 && reply.text.includes('GiftRedeemed') && (await checked(reply));
  });
  for (const type of ['GiftsPurchased', 'PaymentCharged', 'GiftIssued', 'GiftRedeemed'])
    assert.ok(typesOf(bundle).includes(type), type);
  const byRedemption = await checked(await ask(`/ops/gifts/${redemption}/proof`, 'aud'));
  const first = bundle.events.map(({ id }) => id);
  assert.deepEqual(
    byRedemption.events.slice(0, first.length).map(({ id }) => id),
    first,
  );
  for (const user of ['ann', 'till-coffee']) refused(await ask(path, user), 403, 'Forbidden.');
  assert.equal((await ask(path, 'sue')).status, 200);
  refused(await ask('/ops/gifts/nothing/proof', 'aud'), 404, 'gift not found');
  const token = await service.userToken('aud');
  const { text } = await service.ask('GET', `/ops/access?from=${new Date().toISOString().slice(0, 10)}&time_zone=UTC`, {
    token,
  });
  assert.match(text, /GET \/ops\/gifts\/:giftId\/proof/);
});

test('name no gift of others in a refund that was of several', async () => {
  const [own = '', ...others] = await buy(service, 'latte', [{}, {}, {}]);
  const transaction = (await ask(`/ops/gifts/${own}/history`, 'aud')).json.transaction_id as string;
  const refund = { gift_ids: [own, others[0]], reason: 'bought twice' };
  const token = await service.userToken('sue');
  const refunded = await service.ask('POST', `/ops/transactions/${transaction}/refund`, { token, body: refund });
  assert.ok(refunded.status < 300, refunded.text);
  const [reply, bundle] = await eventually(async () => {
    const proof = await ask(`/ops/gifts/${own}/proof`, 'aud');
    return proof.status === 200 && proof.text.includes('GiftsRefunded') && ([proof, await checked(proof)] as const);
  });
  for (const id of others) assert.ok(!reply.text.includes(id), id);
  const requested = bundle.events.find(({ type }) => type === 'RefundRequested');
  assert.ok(requested !== undefined && namesShown(requested).includes('refund_id'));
  assert.equal(namesShown(requested).includes('gift_ids'), false);
});

test('name no gift in the place of one that was replaced', async () => {
  const [own = ''] = await buy(service, 'latte', [{ user_id: 'bob' }]);
  const token = await service.userToken('sue');
  const replaced = await service.ask('POST', `/ops/gifts/${own}/replace`, { token, body: { reason: 'lost' } });
  assert.ok(replaced.status < 300, replaced.text);
  const { replaced_by } = (await ask(`/ops/gifts/${own}/history`, 'aud')).json.data.find(
    ({ type }: { readonly type: string }) => type === 'GiftReplaced',
  ).data as { readonly replaced_by: { readonly gift_id: string } };
  const [reply, bundle] = await eventually(async () => {
    const proof = await ask(`/ops/gifts/${own}/proof`, 'aud');
    return proof.status === 200 && proof.text.includes('GiftReplaced') && ([proof, await checked(proof)] as const);
  });
  assert.ok(!reply.text.includes(replaced_by.gift_id), 'who has the bundle could use that gift');
  assert.ok(typesOf(bundle).includes('GiftReplaced'));
});

test('prove a redemption to its merchant, without sender, receiver and metadata', async () => {
  const path = `/api/v2/gifts/${gifts[0]}/redemptions/${redemption}/proof`;
  const bundle = await eventually(async () => {
    const reply = await ask(path, 'till-coffee');
    return reply.status === 200 && (await checked(reply));
  });
  assert.deepEqual(typesOf(bundle), ['GiftIssued', 'GiftRedeemed']);
  const [issued, redeemed] = bundle.events;
  assert.ok(issued !== undefined && redeemed !== undefined);
  assert.equal(namesShown(issued).includes('sender_id') || namesShown(issued).includes('receiver'), false);
  assert.ok(namesShown(issued).includes('value'));
  assert.ok(namesShown(redeemed).includes('location_id'));
  for (const { metadata } of bundle.events) assert.ok('hash' in metadata);

  for (const user of ['till-cinema', 'ann', 'bob', 'aud']) refused(await ask(path, user), 403, 'Forbidden.');
  refused(await ask(path.replace(redemption, 'nothing'), 'till-coffee'), 404, 'Redemption not found');
  refused(await ask(path.replace(gifts[0] ?? '', '0'.repeat(20)), 'till-coffee'), 404, 'gift not found');
  refused(await ask(`/api/v2/gifts/${gifts[1]}/redemptions/latest/proof`, 'till-coffee'), 404, 'Redemption not found');
});

test('prove the reversal of the latest redemption', async () => {
  await unredeem(service, gifts[0] ?? '');
  const bundle = await eventually(async () => {
    const reply = await ask(`/api/v2/gifts/${gifts[0]}/redemptions/latest/proof`, 'till-coffee');
    return reply.status === 200 && reply.text.includes('GiftUnredeemed') && (await checked(reply));
  });
  assert.deepEqual(typesOf(bundle), ['GiftIssued', 'GiftRedeemed', 'GiftUnredeemed']);
});

test('answer 503 where tiles were altered', async () => {
  const tiles = join(TREE, service.events.logId, 'tile', '0');
  const path = `/api/v2/gifts/${gifts[0]}/redemptions/${redemption}/proof`;
  await eventually(async () => {
    // The keeper of the tree may write tiles once more.
    for (const { parentPath, name } of readdirSync(tiles, { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    ))
      writeFileSync(join(parentPath, name), Buffer.alloc(8_192));
    const reply = await ask(path, 'till-coffee');
    return reply.status !== 200 && (refused(reply, 503, 'Service unavailable.'), true);
  });
});

test.run();
