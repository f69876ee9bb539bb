import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { eventually } from '../../support/assertions/until.js';
import { till } from '../../support/fixtures/testCatalogue.js';
import { buyOne, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite("lists of a merchant's redemptions");
let service: Service;

test.before(async () => {
  service = await startService();
  await service.import({ users: [till('hooks-coffee', 'coffee', ['webhooks'])] });
});
test.after(() => service.close());

const list = async (query = '', user = 'till-coffee', position = ''): Promise<Reply> =>
  service.ask('GET', `/api/v2/redemptions${query}`, {
    token: await service.userToken(user),
    headers: position === '' ? {} : { 'Gift-Position': position },
  });

/** Redeems a new gift. @returns the answer's redemption and position */
async function redeemNew(user = 'till-coffee', location = 'bean-soho'): Promise<{ made: Json; position: string }> {
  const reply = await redeem(service, await buyOne(service), user, location);
  assert.equal(reply.status, 201, reply.text);
  return { made: reply.json.data, position: reply.headers.get('gift-position') ?? '' };
}

const idsIn = ({ json }: Reply): string[] => (json.data as Json[]).map(({ id }) => id as string);

test('another shift finds a redemption by its time and reverses it', async () => {
  const { made, position } = await redeemNew('till-redeem-only');
  const [row] = (await list('', 'till-coffee', position)).json.data;
  assert.deepEqual(row, {
    ...made,
    shortcode: service.shortcodeOf(made.gift_id),
    product_id: 'latte',
    value: row.value,
    user_id: 'till-redeem-only',
    reversible: true,
  });
  assert.ok(row.value > 0);
  assert.equal((await list('', 'till-redeem-only')).json.data[0].reversible, false, 'without the permission');

  const reversed = await unredeem(service, made.gift_id, made.id);
  assert.equal(reversed.status, 200);
  const after = (await list('?limit=1')).json.data[0];
  assert.deepEqual(after, { ...row, redeemed: false, updated_at: reversed.json.data.updated_at, reversible: false });
});

test('only the latest redemption of a gift is reversible', async () => {
  const { made } = await redeemNew();
  assert.equal((await unredeem(service, made.gift_id)).status, 200);
  const again = await redeem(service, made.gift_id);
  const rows = (await list('?limit=2', 'till-coffee', again.headers.get('gift-position') ?? '')).json.data as Json[];
  assert.deepEqual(
    rows.map(({ id, redeemed, reversible }) => [id, redeemed, reversible]),
    [
      [again.json.data.id, true, true],
      [made.id, false, false],
    ],
  );
});

test('a page leads to the next; places and times choose', async () => {
  const made: Json[] = [];
  let position = '';
  for (const location of ['bean-soho', 'bean-leeds', 'bean-soho']) {
    const one = await redeemNew('till-coffee', location);
    made.unshift(one.made);
    position = one.position;
  }
  const ids = made.map(({ id }) => id as string);
  const first = await list('?limit=2', 'till-coffee', position);
  assert.deepEqual([idsIn(first), first.json.has_more], [ids.slice(0, 2), true]);
  assert.equal(idsIn(await list(`?limit=2&after=${first.json.next}`))[0], ids[2]);

  const soho = await list('?location_id=bean-soho&limit=2');
  assert.deepEqual(idsIn(soho), [ids[0], ids[2]]);
  const [newest, middle, oldest] = made.map(({ creation_at }) => creation_at as string);
  assert.deepEqual(idsIn(await list(`?from=${oldest}&to=${newest}`)), ids.slice(1));
  assert.deepEqual(idsIn(await list(`?from=${middle}&location_id=bean-leeds`)), [ids[1]]);
  assert.deepEqual((await list('?location_id=nowhere')).json, { data: [], next: null, has_more: false });

  const seen: string[] = [];
  for (let after = ''; ;) {
    const page = await list(`?limit=1${after}`);
    seen.push(...idsIn(page));
    if (page.json.has_more !== true) break;
    after = `&after=${page.json.next}`;
  }
  assert.deepEqual(seen.slice(0, 3), ids);
  assert.equal(new Set(seen).size, seen.length);
});

test('a customer who redeems is not named; another merchant sees nothing of it', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  const reply = await redeem(service, gift, 'bob');
  assert.equal(reply.status, 201, reply.text);
  const position = reply.headers.get('gift-position') ?? '';
  const [row] = (await list('', 'till-coffee', position)).json.data;
  assert.deepEqual([row.gift_id, row.user_id], [gift, null]);
  assert.ok(!idsIn(await list('', 'till-cinema', position)).includes(row.id));
});

test('shows what was redeemed where it is not valid, without its shortcode, as something others reverse', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  const made = (await redeem(service, gift, 'bob', 'screen-soho')).json.data;
  const read = async (user: string): Promise<Json[]> =>
    ((await list('', user)).json.data as Json[]).filter(({ id }) => id === made.id);
  const [row] = await eventually(async () => {
    const found = await read('till-cinema');
    return found.length > 0 && found;
  });
  assert.deepEqual([row.shortcode, row.user_id, row.redeemed, row.reversible], [null, null, true, false]);
  assert.deepEqual(await read('till-coffee'), []);
  refused(await unredeem(service, gift, made.id, 'till-cinema'), 403, 'Cannot unredeem this gift.');

  assert.equal((await unredeem(service, gift, made.id, 'till-coffee')).status, 200);
  assert.equal((await read('till-cinema'))[0].redeemed, false);
});

test('shows no shortcode to a user who may neither redeem nor unredeem: by it a stranger would claim the gift', async () => {
  const { made, position } = await redeemNew();
  assert.equal((await unredeem(service, made.gift_id)).status, 200);
  const [row] = (await list('', 'hooks-coffee', position)).json.data;
  assert.deepEqual([row.id, row.shortcode], [made.id, null]);
  const token = await service.userToken('hooks-coffee');
  refused(await service.ask('GET', `/api/v2/gifts/${row.gift_id}`, { token }), 404, 'gift not found');
});

test('customers, users without a permission and clients are refused, and so is a false query', async () => {
  for (const user of ['ann', 'till-nothing']) refused(await list('', user), 403, 'Forbidden.');
  refused(await service.ask('GET', '/api/v2/redemptions', { token: await service.clientToken() }), 403, 'Forbidden.');
  refused(await list('?after=-'), 422, 'after is not valid');
  refused(await list('?after=zz'), 422, 'after is not valid');
  const reply = await list('?from=2026-05-04');
  refused(reply, 422, 'from must be a time with its zone, such as 2026-05-04T09:00:00+01:00');
  assert.equal(reply.headers.get('error-field'), 'from');
});

test.run();
