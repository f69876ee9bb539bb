/**
 * Work that the reference model does not judge: purchases with cards and numbers that make trouble or with gifts to be
 * sent later, and support that gives money back, replaces gifts and sends them again while tills redeem. The checks of
 * log and money judge it (`checks/`).
 */
import { sleep } from '../../../src/lib/world.js';
import { purchaseOf } from '../../support/service/giftFlow.js';
import { field, listField, textField } from '../model/history.js';
import type { Member } from '../service/member.js';
import type { Simulation } from '../world/simulation.js';
import { type Client, openClient } from './client.js';
import { sentOnce } from './sentOnce.js';

/** Cards that are charged in the end, one way or another, declined (`bank.ts`), or parked (`parkedDesk.ts`). */
export const TROUBLED_CARDS = [
  'pm_card_visa',
  'pm_card_flaky',
  'pm_card_answerLost',
  'pm_card_slow',
  'pm_card_parked',
  'pm_card_refundFail',
  'pm_card_authenticationRequired',
];

const BUYERS = ['ann', 'bob'];
const SUPPORT = 'sue';
const TILL = { user: 'till-coffee', location: 'bean-soho' };
const PRODUCTS = ['latte', 'mocha'];
/** The number that is parked twice before it is notified (docs/api/sandbox.md#numbers). */
const PARKED_NUMBER = '+1 500 555 0004';
const PAUSE = { least: 200, most: 4_000 };
/** Virtual ms until a gift is to be sent. */
const SEND_IN = { least: 5_000, most: 60_000 };
const DESKS = 2;
/** Share of refunds whose answer the provider loses. */
const ANSWER_LOST = 0.2;

export interface Desks {
  /** Lets them act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Ids of the transactions that they know to have made, and of all gifts of these. */
  transactions(): readonly string[];
  gifts(): readonly string[];
}

interface Bought {
  readonly transaction: string;
  /** Its gifts, and those that replace them. */
  readonly gifts: string[];
}

/** Desks that may be started several times. @param times how much faster they act than is usual */
export function openDesks(simulation: Simulation, members: readonly Member[], times: number): Desks {
  let starts = 0;
  const all: Bought[][] = [];
  return {
    transactions: () => all.flat().map(({ transaction }) => transaction),
    gifts: () => all.flat().flatMap(({ gifts }) => gifts),
    start(untilMs) {
      starts += 1;
      for (let n = 1; n <= DESKS; n++)
        all.push(
          startDesk(openClient(simulation, { name: `desk-${n}.${starts}`, members }), simulation, untilMs, times),
        );
    },
  };
}

/** @returns what the desk has bought, as it grows */
function startDesk(client: Client, simulation: Simulation, untilMs: number, times: number): Bought[] {
  const bought: Bought[] = [];
  const { chance } = client;

  async function buy(): Promise<void> {
    const receivers = Array.from({ length: 1 + chance.integer(3) }, () =>
      chance.happens(0.5) ? {} : { phone_number: numberOf() },
    );
    const soon = new Date(simulation.now() + chance.between(SEND_IN.least, SEND_IN.most)).toISOString();
    const body = purchaseOf(chance.pick(PRODUCTS), receivers, {
      reference: chance.pick(TROUBLED_CARDS),
      ...(chance.happens(0.3) ? { sendAt: soon } : {}),
    });
    const answer = await sentOnce(client, chance.pick(BUYERS), 'POST', '/api/v2/transactions', body);
    if (answer?.status !== 201) return;
    const gifts = listField(answer.body, 'data', 'gifts').map(String);
    bought.push({
      transaction: textField(answer.body, 'data', 'id') ?? String(field(answer.body, 'data', 'id')),
      gifts,
    });
  }

  const numberOf = (): string => (chance.happens(0.3) ? PARKED_NUMBER : `07700 9001${10 + chance.integer(90)}`);

  /** Another gift in place of one, or the message once more. */
  async function help(): Promise<void> {
    const { gifts } = chance.pick(bought);
    const gift = chance.pick(gifts);
    if (chance.happens(0.2)) {
      const items = [gift, chance.pick(chance.pick(bought).gifts)].map((id) => ({ id }));
      await sentOnce(client, SUPPORT, 'POST', '/ops/actions', { action: 'resend', reason: 'they are lost', items });
      return;
    }
    const action = chance.happens(0.6) ? 'replace' : 'resend';
    const answer = await sentOnce(client, SUPPORT, 'POST', `/ops/gifts/${gift}/${action}`, { reason: 'it is lost' });
    simulation.marks.sometimes(`${action} answered ${answer?.status ?? 'never'}`);
    const other = textField(answer?.body, 'data', 'replaced_by');
    if (other !== undefined && !gifts.includes(other)) gifts.push(other);
  }

  async function refund(): Promise<void> {
    const { transaction, gifts } = chance.pick(bought);
    const some = chance.happens(0.5) ? { gift_ids: [chance.pick(gifts)] } : {};
    if (chance.happens(ANSWER_LOST)) simulation.faults.aim('provider loses an answer', / put refund\/\S+ at 0$/);
    const body = { reason: 'a simulated refund', ...some, ...(chance.happens(0.2) ? { voided: true } : {}) };
    const answer = await sentOnce(client, SUPPORT, 'POST', `/ops/transactions/${transaction}/refund`, body);
    simulation.marks.sometimes(`refund answered ${answer?.status ?? 'never'}`);
  }

  async function redeem(): Promise<void> {
    const gift = chance.pick(chance.pick(bought).gifts);
    await sentOnce(client, TILL.user, 'POST', `/api/v2/gifts/${gift}/redemptions`, { location_id: TILL.location });
  }

  client.process.start('desk', async () => {
    while (simulation.ms() < untilMs) {
      await sleep(chance.between(PAUSE.least, PAUSE.most) / times);
      if (bought.length === 0 || chance.happens(0.4)) await buy();
      else await chance.pick([refund, refund, help, help, redeem])();
    }
  });
  return bought;
}
