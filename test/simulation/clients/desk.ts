/**
 * Work that the reference model does not judge: purchases with cards that make trouble or with gifts to be sent later,
 * and support that gives money back while tills redeem. The checks of log and money judge it (`checks/`).
 */
import { sleep } from '../../../src/lib/world.js';
import { purchaseOf } from '../../support/service/giftFlow.js';
import { field, listField, textField } from '../model/history.js';
import type { Member } from '../service/member.js';
import type { Simulation } from '../world/simulation.js';
import { openClient } from './client.js';
import { sentOnce } from './sentOnce.js';

/** Cards that are charged in the end, one way or another, or declined (`bank.ts`). */
export const TROUBLED_CARDS = [
  'pm_card_visa',
  'pm_card_flaky',
  'pm_card_answerLost',
  'pm_card_slow',
  'pm_card_refundFail',
  'pm_card_authenticationRequired',
];

const BUYERS = ['ann', 'bob'];
const SUPPORT = 'sue';
const TILL = { user: 'till-coffee', location: 'bean-soho' };
const PRODUCTS = ['latte', 'mocha'];
const PAUSE = { least: 200, most: 4_000 };
/** Virtual ms until a gift is to be sent. */
const SEND_IN = { least: 5_000, most: 60_000 };
const DESKS = 2;

export interface Desks {
  /** Lets them act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Ids of the transactions that they know to have made. */
  transactions(): readonly string[];
}

interface Bought {
  readonly transaction: string;
  readonly gifts: readonly string[];
}

/** Desks that may be started several times. */
export function openDesks(simulation: Simulation, members: readonly Member[]): Desks {
  let starts = 0;
  const all: Bought[][] = [];
  return {
    transactions: () => all.flat().map(({ transaction }) => transaction),
    start(untilMs) {
      starts += 1;
      for (let n = 1; n <= DESKS; n++) all.push(startDesk(simulation, `desk-${n}.${starts}`, members, untilMs));
    },
  };
}

/** @returns what the desk has bought, as it grows */
function startDesk(simulation: Simulation, name: string, members: readonly Member[], untilMs: number): Bought[] {
  const client = openClient(simulation, { name, members });
  const bought: Bought[] = [];
  const { chance } = client;

  async function buy(): Promise<void> {
    const receivers = Array.from({ length: 1 + chance.integer(3) }, () =>
      chance.happens(0.5) ? {} : { phone_number: `07700 9001${10 + chance.integer(90)}` },
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

  async function refund(): Promise<void> {
    const { transaction, gifts } = chance.pick(bought);
    const some = chance.happens(0.5) ? { gift_ids: [chance.pick(gifts)] } : {};
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
      await sleep(chance.between(PAUSE.least, PAUSE.most));
      if (bought.length === 0 || chance.happens(0.4)) await buy();
      else if (chance.happens(0.5)) await refund();
      else await redeem();
    }
  });
  return bought;
}
