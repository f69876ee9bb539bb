/** `gift people erase` says what goes, and asks a person; scripts say --yes. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { gift, type Ran } from '../../support/service/cli.js';
import { type Service, startService } from '../../support/service/service.js';

const test = suite('cli/people erase');
let service: Service;
test.before(async () => {
  service = await startService({ catalogue: CATALOGUE });
  await service.import({
    users: ['eve', 'fay'].map((id) => ({ id, username: `${id}@person.example`, password: 'a password', name: id })),
    payment_methods: [{ reference: 'pm_eve', kind: 'card', users: ['eve'], customer: 'cus_eve' }],
  });
});
test.after(() => service.close());

const BECAUSE = ['--reason', 'asked for it'];

const erase = async (stdin: Readable, ...args: readonly string[]): Promise<Ran> =>
  gift(service.settings, ['people', 'erase', ...args, ...BECAUSE], { stdin });

/** Standard input of a person who types `text`. */
const typed = (text: string): Readable => Object.assign(Readable.from([text]), { isTTY: true });

const isErased = async (id: string): Promise<boolean> =>
  (await service.events.read(`user-${id}`)).some(({ type }) => type === 'PersonErased');

test('shows what goes and erases nobody without the answer yes', async () => {
  for (const answer of ['no\n', '\n', 'y\n', '', 'yes please\n']) {
    const { code, out, err } = await erase(typed(answer), 'eve');
    assert.deepEqual([code, out], [1, ''], `${JSON.stringify(answer)}: ${err}`);
    assert.match(err, /account: 1 .*until the person is erased/);
    assert.match(err, /payment methods: 1 in/);
    assert.match(err, /erase eve for good\? .*yes/);
    assert.match(err, /nothing was done/);
  }
  assert.equal(await isErased('eve'), false);
  const user = await service.events.read('user-eve');
  assert.deepEqual(
    user.map(({ type }) => type),
    ['UserAdded'],
  );
});

test('erases where a person answers yes', async () => {
  const { code, out, err } = await erase(typed('yes\n'), 'eve');
  assert.equal(code, 0, err);
  assert.match(out, /^eve: erased at/);
  assert.equal(await isErased('eve'), true);
});

test('asks nobody for a person that there is not', async () => {
  const { code, err } = await erase(typed('yes\n'), 'nobody');
  assert.equal(code, 1);
  assert.match(err, /^gift: Person not found: .*\n$/);
});

test('refuses without a terminal unless --yes is said', async () => {
  for (const refused of [
    await erase(Readable.from(['yes\n']), 'fay'),
    await erase(Readable.from([]), 'fay'),
    await erase(typed('07700 900155\n'), '--phone', '-'),
  ]) {
    assert.deepEqual([refused.code, refused.out], [2, ''], refused.err);
    assert.match(refused.err, /--yes/);
  }
  assert.equal(await isErased('fay'), false);
  const { code, out, err } = await erase(Readable.from([]), 'fay', '--yes', '--json');
  assert.equal(code, 0, err);
  assert.equal((JSON.parse(out) as { person: string }).person, 'fay');
  assert.equal(err, '');
});

test.run();
