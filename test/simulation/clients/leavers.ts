/**
 * Persons who buy and get gifts, and then have themselves erased (docs/personal-data.md#erasure): by the approval of
 * another user of support or once it is due, some after they had withdrawn it.
 */
import { sleep } from '../../../src/lib/world.js';
import { purchaseOf } from '../../support/service/giftFlow.js';
import type { Finding } from '../model/finding.js';
import { type Answer, field, listField } from '../model/history.js';
import type { Member } from '../service/member.js';
import { perform } from '../world/simulatedWorld.js';
import type { Simulation } from '../world/simulation.js';
import { openClient } from './client.js';
import { sentOnce } from './sentOnce.js';

export interface Leaver {
  readonly id: string;
  readonly name: string;
  readonly phone_number: string;
}

/** Nobody else writes their names and numbers anywhere. */
export const LEAVERS: readonly Leaver[] = [
  { id: 'eve', name: 'Evelyn Farewell', phone_number: '07700 900801' },
  { id: 'fay', name: 'Fay Goodbye', phone_number: '07700 900802' },
  { id: 'gus', name: 'Gustav Adieu', phone_number: '07700 900803' },
];
/** The second user of support, who approves and withdraws what the first one has requested. */
export const SECOND_SUPPORT = 'pam';

export interface Leavers {
  /** Lets them act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Lets them leave as soon as they can: in runs in which what knows of erasures is put back. */
  hurry(): void;
  /** Lets them request again what was not approved: what was put back may not know of the request. */
  forgotten(): void;
  /**
   * Requests erasures again where the outcome of a request is unknown, and waits for all. To be called once nothing fails
   * any more.
   * @param settle settles what is parked, which erasures wait for
   * @returns those that were not carried out in time
   */
  finish(settle: () => Promise<void>): Promise<readonly Finding[]>;
  /** Ids of the transactions that they know to have made. */
  transactions(): readonly string[];
  /** Clear values that name erased persons, or that they or others wrote about them. */
  erasedValues(): readonly string[];
}

const SUPPORT = 'sue';
const FRIENDS = ['ann', 'bob'];
const PAUSE = { least: 1_000, most: 10_000 };
/** Share of acts by which somebody leaves, and of erasures that another user of support approves. */
const LEAVES = 0.3;
const APPROVED = 0.5;
/** The same of those who hurry, of whom most buy and leave within seconds. */
const HURRIED = { pause: { least: 20, most: 400 }, leaves: 0.8, approved: 0.9 };
/** Share of other acts that block a gift. */
const BLOCKED = 0.3;
/** Share of purchases whose refunds the provider refuses, and of those that are refunded. */
const REFUND_FAILS = 0.3;
const REFUNDED = 0.4;
/** An erasure that waits for money is tried again every ten minutes. */
const WITHIN_MS = 1_500_000;
const ASK_EVERY_MS = 5_000;

export function openLeavers(simulation: Simulation, members: readonly Member[]): Leavers {
  const client = openClient(simulation, { name: 'leavers', members });
  const { chance } = client;
  const leaving = new Set<Leaver>();
  /** Those whose erasure is known to be requested. */
  const requested = new Set<Leaver>();
  /** Those whose erasure is known to be approved. */
  const approved = new Set<Leaver>();
  const values = new Map(LEAVERS.map((one) => [one, [one.name, one.phone_number, `${one.id}@test.example`]]));
  const gifts: { readonly of: Leaver; readonly gift: string }[] = [];
  const transactions: string[] = [];
  let texts = 0;
  let pace = { pause: PAUSE, leaves: LEAVES, approved: APPROVED };

  /** A text about a person, which must go with them. */
  function textAbout(person: Leaver): string {
    const text = `${person.name} number ${++texts}`;
    values.get(person)?.push(text);
    return text;
  }

  const erasure = async (
    person: Leaver,
    user: string,
    action: '' | '/approve' | '/withdraw',
  ): Promise<Answer | undefined> =>
    sentOnce(client, user, 'POST', `/ops/people/${person.id}/erasure${action}`, { reason: 'asked for it by letter' });

  /** The erasures that are still to be carried out, as texts. */
  async function openErasures(): Promise<string[]> {
    const answer = await client.exchange(SUPPORT, {
      method: 'GET',
      path: '/ops/erasures',
      headers: {},
      body: undefined,
    });
    if (answer?.status !== 200) return ['unknown: the list was not answered'];
    return listField(answer.body, 'data').map((one) => JSON.stringify(one));
  }

  async function buy(person: Leaver): Promise<void> {
    const [buyer, receiver] = chance.happens(0.5)
      ? [person.id, chance.pick(FRIENDS)]
      : [chance.pick(FRIENDS), person.id];
    const reference = chance.happens(REFUND_FAILS) ? 'pm_card_refundFail' : 'pm_card_visa';
    const body = purchaseOf('latte', [{ user_id: receiver }], { message: textAbout(person), reference });
    const answer = await sentOnce(client, buyer, 'POST', '/api/v2/transactions', body);
    const [gift] = listField(answer?.body, 'data', 'gifts');
    if (answer?.status !== 201) return;
    gifts.push({ of: person, gift: String(gift) });
    const transaction = String(field(answer.body, 'data', 'id'));
    transactions.push(transaction);
    if (chance.happens(REFUNDED)) await refund(person, transaction);
  }

  /** Where it is parked, the erasure waits until a person has settled it otherwise. */
  async function refund(person: Leaver, transaction: string): Promise<void> {
    const path = `/ops/transactions/${transaction}/refund`;
    await sentOnce(client, SUPPORT, 'POST', path, { reason: textAbout(person) });
  }

  async function block(): Promise<void> {
    const { of, gift } = chance.pick(gifts);
    if (leaving.has(of)) return;
    for (const action of ['block', 'unblock'])
      await sentOnce(client, SUPPORT, 'POST', `/ops/gifts/${gift}/${action}`, { reason: textAbout(of) });
  }

  /** Requests the erasure. Support may do so a few times a day only. */
  async function request(person: Leaver): Promise<void> {
    const answer = await erasure(person, SUPPORT, '');
    if (answer !== undefined && answer.status < 300) requested.add(person);
  }

  async function leave(person: Leaver): Promise<void> {
    leaving.add(person);
    await request(person);
    if (chance.happens(0.3)) {
      requested.delete(person);
      await erasure(person, SECOND_SUPPORT, '/withdraw');
      await request(person);
    }
    if (!chance.happens(pace.approved)) return;
    const answer = await erasure(person, SECOND_SUPPORT, '/approve');
    if (answer !== undefined && answer.status < 300) approved.add(person);
    simulation.marks.sometimes(`the approval of an erasure is answered ${answer?.status ?? 'never'}`);
  }

  return {
    start(untilMs) {
      client.process.start('acting', async () => {
        while (simulation.ms() < untilMs) {
          await sleep(chance.between(pace.pause.least, pace.pause.most));
          const staying = LEAVERS.filter((one) => !leaving.has(one));
          if (staying.length === 0) return;
          if (chance.happens(pace.leaves)) await leave(chance.pick(staying));
          else if (gifts.length > 0 && chance.happens(BLOCKED)) await block();
          else await buy(chance.pick(staying));
        }
      });
    },
    hurry() {
      pace = HURRIED;
    },
    forgotten() {
      for (const person of requested) if (!approved.has(person)) requested.delete(person);
    },
    finish: async (settle) =>
      perform(
        simulation,
        client.process,
        'finish erasures',
        async () => {
          const until = simulation.ms() + WITHIN_MS;
          for (const person of leaving) if (!requested.has(person)) await request(person);
          let open = await openErasures();
          while (open.length > 0 && simulation.ms() < until) {
            await settle();
            await sleep(ASK_EVERY_MS);
            open = await openErasures();
          }
          return open.map((text) => ({ rule: 'erasure', text: `not carried out in time: ${text}` }));
        },
        2 * WITHIN_MS,
      ),
    transactions: () => transactions,
    erasedValues: () => [...requested].flatMap((one) => values.get(one) ?? []),
  };
}
