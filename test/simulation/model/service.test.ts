/** Holds the model against the real service: whatever seeded clients see of it, the model must explain. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';
import { PARTS, seededClients } from './clients.js';
import { type Answer, type Observation, recorder } from './history.js';
import { installationOf } from './installation.js';
import type { Choice } from './known.js';
import { readWhole } from './lastReads.js';
import { check } from './model.js';
import { requestOf } from './requests.js';
import { seededRandom } from './random.js';

const test = suite('the reference model and the service');

const SEED = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9));
const OPERATIONS = Number(process.env['TEST_OPERATIONS'] ?? 300);
const AT_ONCE = 6;
/** Answers without which a run shows little; clients go on until each was met, for at most `TIMES` as long. */
const SHOWN = ['redeem 201', 'redeem 405', 'unredeem 200', 'lookUpKey 200', 'purchase 201'];
const TIMES = 10;
/** Payment methods whose outcome is known at once. */
const PAYMENTS = ['pm_card_visa', 'pm_card_visa_chargeDeclined', 'wallet-invoice'];

/** @param loseAfterMs the client goes away so many ms after it sent the request */
async function exchange(
  service: Service,
  { client, operation }: Choice,
  loseAfterMs?: number,
): Promise<Answer | undefined> {
  const { method, path, headers, body } = requestOf(operation);
  const own = /^client:(.*)$/.exec(client)?.[1];
  const token = own === undefined ? service.userToken(client) : service.clientToken(own);
  const authorization = `Bearer ${await token}`;
  const gone = new AbortController();
  const timer = loseAfterMs === undefined ? undefined : setTimeout(() => gone.abort(), loseAfterMs);
  try {
    const response = await fetch(service.url + path, {
      method,
      headers: { ...headers, authorization },
      signal: gone.signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: JSON.parse(text) as unknown,
    };
  } catch (error) {
    if (gone.signal.aborted) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Runs so many of them concurrently. */
async function atOnce(count: number, run: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, run));
}

/** Waits until nothing is in progress and read models hold all that the log holds. */
async function untilQuiet(service: Service): Promise<void> {
  const token = await service.userToken('sue');
  let before = '';
  await eventually(async () => {
    const { json } = await service.ask('GET', '/ops/projections', { token });
    const rows = json['data'] as readonly Record<string, unknown>[];
    const now = JSON.stringify(rows.map(({ name, position }) => [name, position]));
    const same = now === before;
    before = now;
    return same && rows.every((row) => (row['lag_events'] ?? 0) === 0 && (row['in_flight'] ?? 0) === 0);
  }, 'a service that has nothing to do');
}

test('explains all that concurrent clients see', async () => {
  const service = await startService();
  try {
    const installation = installationOf(CATALOGUE);
    const random = seededRandom(SEED);
    const clients = seededClients({
      installation,
      random,
      payments: PAYMENTS,
      parts: PARTS,
    });
    const record = recorder(() => performance.timeOrigin + performance.now());
    for (const user of installation.users.keys()) await service.userToken(user);

    const send = async (choice: Choice, loseAfterMs?: number): Promise<Observation> => {
      const answered = record.send(choice.client, choice.operation);
      const observation = answered(await exchange(service, choice, loseAfterMs));
      clients.learn(observation);
      return observation;
    };
    const seen = new Set<string>();
    let sent = 0;
    const enough = (): boolean =>
      sent >= TIMES * OPERATIONS || (sent >= OPERATIONS && SHOWN.every((answer) => seen.has(answer)));
    await atOnce(AT_ONCE, async () => {
      while (!enough()) {
        sent += 1;
        const { operation, answer } = await send(clients.next(), random() < 0.08 ? random() * 12 : undefined);
        seen.add(`${operation.kind} ${answer?.status}`);
      }
    });
    for (const choice of clients.takeUpAll()) await send(choice);
    await untilQuiet(service);
    const quietFrom = performance.timeOrigin + performance.now();
    const reads = clients.readAll();
    await atOnce(AT_ONCE, async () => {
      for (let choice = reads.pop(); choice !== undefined; choice = reads.pop()) await readWhole(choice, send);
    });
    const day = new Date(quietFrom).toISOString().slice(0, 10);
    await send({ client: 'aud', operation: { kind: 'reconcile', day } });

    const history = record.history();
    const findings = check(history, { installation, leeway: { clockMs: 1_000, quietFrom }, alone: true });
    assert.equal(findings.map(({ rule, text }) => `${rule}: ${text}`).join('\n\n'), '', `TEST_SEED=${SEED}`);
    for (const answer of SHOWN)
      assert.ok(seen.has(answer), `no ${answer} among ${[...seen].toSorted().join(', ')}; TEST_SEED=${SEED}`);
  } finally {
    await service.close();
  }
});

test.run();
