/**
 * Operators who import while clients act and things fail (docs/import.md): a product with a pool of codes, a card and a
 * user who buys at once; other PINs; users who are made inactive or work for another merchant. They see what answers say
 * of what was imported just before.
 */
import { erasedUsers } from '../../../src/cli/importLog.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { importCatalogue } from '../../../src/import/importCatalogue.js';
import { ImportFaultsError } from '../../../src/import/faults.js';
import { currentTime } from '../../../src/lib/clock.js';
import { sleep } from '../../../src/lib/world.js';
import { accountsProjection } from '../../../src/projections/accounts.js';
import { checkpointName } from '../../../src/runtime/readmodels/index.js';
import { openErasures } from '../../../src/ops/people/index.js';
import { ConflictError } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { readable } from '../../../src/service/engines.js';
import { purchaseOf } from '../../support/service/giftFlow.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import type { Finding } from '../model/finding.js';
import { type Answer, field, listField, textField } from '../model/history.js';
import type { Cluster } from '../service/cluster.js';
import type { Member } from '../service/member.js';
import { simulatedHash } from '../service/passwords.js';
import { linkTo } from '../world/link.js';
import { type SimulatedProcess, startProcess } from '../world/simulatedProcess.js';
import { perform } from '../world/simulatedWorld.js';
import { openClient } from './client.js';
import { LEAVERS } from './leavers.js';
import { sentOnce } from './sentOnce.js';

export interface Importers {
  /** Lets them act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Imports all leavers again. To be called once nothing fails any more, and erasures are carried out. */
  finish(): Promise<void>;
  /** The service was restored from a backup, which may lack what was imported. */
  forgetSince(): void;
  /** What answers showed that contradicts an import. */
  findings(): readonly Finding[];
}

/** Share of runs in which somebody imports. */
const PROBABILITY = 0.5;
const PAUSE = { least: 300, most: 4_000 };
const RETRY = { least: 200, most: 2_000 };
const CODES = 6;
/** Share of products that get their pool only after they were bought. */
const LATE_POOL = 0.5;
/** Share of imports of products and codes whose read model falls behind, since its next write fails. */
const BEHIND = 0.5;
/** Share of the vouchers that are first drawn for another segment, in vain. */
const UNDECIDED = 0.3;
const codesOf = (segment: string): string[] =>
  Array.from({ length: CODES }, (_, index) => `${segment}-code-${index}`.toUpperCase());
const WRITE_OF_CATALOGUE = /^documents write .*\bcatalogue@/;
const WRITE_OF_CODES = /^documents write .*\bvoucher_codes@/;
/** Virtual ms after which an account that the read model shows counts in every process (docs/api/tokens.md#sessions). */
const HOLDS_MS = 1_500;
const MERCHANTS = ['coffee', 'shops'];
/** A till's user who works now for one merchant, now for the other. */
export const MOVER = 'till-mover';
const AT_COFFEE = 'bean-soho';
const WITHIN_MS = 300_000;

/** What an import said; `from`: when its end was known, ms since the epoch. `position`: of its last event. */
interface Said<T> extends Imported {
  readonly value: T;
}

interface Imported {
  readonly from: number;
  readonly position: string;
}

interface Season {
  readonly name: string;
  /** Imports of PINs by code. */
  readonly pins: Map<string, Said<string>[]>;
  /** The product's second segment, which has a pool of its own. */
  readonly other: string;
  /** Codes that a gift is known to have. */
  readonly drawn: Set<string>;
  readonly gifts: string[];
  /** The import of its pool, before which codes are generated. */
  pooled?: Said<true>;
  inactive?: Said<true>;
  /** Whether an import has begun that makes its user inactive. */
  closed?: true;
}

/**
 * @param gifts ids of gifts that a till of the merchant `coffee` may redeem
 * @param times how much faster they act than is usual
 */
export function openImporters(
  cluster: Cluster,
  members: readonly Member[],
  { gifts, times }: { readonly gifts: () => readonly string[]; readonly times: number },
): Importers {
  const { simulation } = cluster;
  const client = openClient(simulation, { name: 'importer', members });
  const { chance, process } = client;
  const happensHere = chance.happens(PROBABILITY);
  const findings: Finding[] = [];
  const found = (text: string): void => void findings.push({ rule: 'imports', text });
  let seasons: Season[] = [];
  let number = 0;
  /** The merchant that the mover works for; `undefined`: not known. */
  let moved: Said<string> | undefined;

  function deps(operator: SimulatedProcess): Parameters<typeof importCatalogue>[0] {
    const settings = cluster.config('api');
    const log = readable(
      openSimulatedEvents(cluster.log, linkTo('events', operator, simulation)),
      settings,
      undefined,
      openSimulatedKeys(cluster.keys, linkTo('keys', operator, simulation)),
    );
    const hash = keyedHash(Buffer.from(settings.hashKey ?? ''));
    return { ...log, hash, erasedUsers: async () => erasedUsers(openErasures(log)), now: currentTime };
  }

  /** Repeats an import until it is done. @returns `undefined`: it was refused */
  async function imported(file: object, operator = process): Promise<Imported | undefined> {
    for (;;)
      try {
        await importCatalogue(deps(operator), file, { by: { user: 'cli:importer' } });
        return { from: simulation.now(), position: cluster.log.end() ?? '' };
      } catch (error) {
        if (error instanceof ImportFaultsError) return undefined;
        if (!(error instanceof UnavailableError) && !(error instanceof ConflictError)) throw error;
        await sleep(chance.between(RETRY.least, RETRY.most));
      }
  }

  const userOf = (id: string, more: object): object => ({
    id,
    username: `${id}@test.example`,
    password_hash: simulatedHash(`${id}-password`, 'm=4096,t=3,p=1', 'c2ltdWxhdGVkIHNhbHQgIQ'),
    name: id,
    ...more,
  });

  /** A new product, with codes, a card and a user who buys it at once. */
  async function open(): Promise<void> {
    const name = `season-${++number}`;
    const season: Season = { name, other: `${name}-other`, pins: new Map(), drawn: new Set(), gifts: [] };
    const segments = [name, season.other];
    if (chance.happens(BEHIND)) simulation.faults.aim('documents refuses', WRITE_OF_CATALOGUE);
    const done = await imported({
      segments: segments.map((id) => ({ id, name: id, voucherType: 'alpha/pin', expiry: 60 })),
      products: [{ id: name, brand_id: 'bean', name, sale_price: 300, segments }],
      users: [userOf(name, {})],
      payment_methods: [{ reference: `pm_card_${name}`, kind: 'card', users: [name] }],
    });
    if (done === undefined) return found(`the import of ${name} was refused`);
    seasons.push(season);
    if (!chance.happens(LATE_POOL)) await fill(season);
    await buy(season);
  }

  /** Gives the product a pool of codes. */
  async function fill(season: Season): Promise<void> {
    const { name, other, pins } = season;
    const codes = codesOf(name);
    const done = await importedCodes([
      ...codes.map((code) => ({ segment_id: name, code, pin: '1000' })),
      ...codesOf(other).map((code) => ({ segment_id: other, code, pin: '1000' })),
    ]);
    if (done === undefined) return found(`the import of codes of ${name} was refused`);
    for (const code of codes) pins.set(code, [{ value: '1000', ...done }]);
    season.pooled = { value: true, ...done };
    return drawAll(season);
  }

  /** Draws vouchers of all gifts at once, which may meet at one code. */
  async function drawAll(season: Season): Promise<void> {
    await Promise.all(season.gifts.map(async () => draw(season)));
  }

  async function importedCodes(voucher_codes: readonly object[]): Promise<Imported | undefined> {
    if (chance.happens(BEHIND)) simulation.faults.aim('documents refuses', WRITE_OF_CODES);
    return imported({ voucher_codes });
  }

  async function buy(season: Season): Promise<void> {
    const { name } = season;
    const known = seasons;
    const body = purchaseOf(name, [{}, {}, {}], { reference: `pm_card_${name}` });
    const answer = await sentOnce(client, name, 'POST', '/api/v2/transactions', body);
    simulation.marks.sometimes(`a purchase of what was just imported is answered ${answer?.status ?? 'never'}`);
    // A refusal holds as of the log's end (docs/api/conventions.md#order-of-checks).
    if (answer !== undefined && answer.status >= 400 && season.closed !== true && known === seasons)
      found(
        `${name} and all that its user needs to buy it were imported, and the purchase was refused: ${answer.status}`,
      );
    if (answer?.status !== 201) return;
    season.gifts.push(...listField(answer.body, 'data', 'gifts').map(String));
    if (chance.happens(0.3)) await drawAll(season);
  }

  /** Changes the PINs of all codes that no gift is known to have. */
  async function changePins(season: Season): Promise<void> {
    const pin = String(2_000 + ++number);
    const codes = [...season.pins.keys()].filter((code) => !season.drawn.has(code));
    if (codes.length === 0) return;
    const done = await importedCodes(codes.map((code) => ({ segment_id: season.name, code, pin })));
    if (done !== undefined) for (const code of codes) season.pins.get(code)?.push({ value: pin, ...done });
    await draw(season);
  }

  /** Draws a code of another segment for the gift, which the gift then does not get. */
  async function drawInVain(
    user: string,
    gift: string,
    { path, segmentId }: { readonly path: string; readonly segmentId: string },
  ): Promise<void> {
    simulation.faults.aim('events refuses', new RegExp(` append gift-${gift} VoucherAssigned`));
    const headers = { 'content-type': 'application/json' };
    const answer = await client.exchange(user, { method: 'POST', path, headers, body: { segmentId } });
    simulation.marks.sometimes('a gift does not get a code that was drawn for it', answer?.status === 503);
  }

  /** Draws a voucher of the pool. Of a code that a gift has already nobody knows when it got its PIN. */
  async function draw({ name, other, pins, gifts: own, pooled, drawn }: Season): Promise<void> {
    const gift = own.shift();
    if (gift === undefined) return;
    const [sent, known] = [simulation.now(), seasons];
    const path = `/api/v2/gifts/${gift}/voucher/claimed`;
    if (chance.happens(UNDECIDED)) await drawInVain(name, gift, { path, segmentId: other });
    const answer = await sentOnce(client, name, 'POST', path, {});
    // The log was put back since.
    if (known !== seasons) return;
    // The read model may not have the pool yet.
    if (answer?.status === 422) own.push(gift);
    if (answer?.status !== 200) return;
    const [code = '', pin = ''] = listField(answer.body, 'data').map((one) => textField(one, 'value'));
    simulation.marks.sometimes('a code is generated before the import of a pool', pooled === undefined);
    if (pooled === undefined) return;
    // The attempt for the other segment was not in vain.
    if (textField(answer.body, 'segment', 'id') === other) {
      if (!codesOf(other).includes(code)) found(`gift ${gift} has the code ${code}, which is not of ${other}`);
      return;
    }
    simulation.marks.sometimes('a code is drawn from a pool that was just imported');
    if (drawn.has(code)) found(`gift ${gift} has the code ${code} of ${name}, and another gift has it, too`);
    drawn.add(code);
    const said = pins.get(code);
    if (said === undefined) return found(`gift ${gift} has the code ${code}, which is none of the pool of ${name}`);
    const latest = said.findLastIndex(({ from }) => from <= sent);
    if (!said.slice(Math.max(0, latest)).some(({ value }) => value === pin))
      found(`gift ${gift} has the code ${code} with the PIN ${pin}, but the import says ${said[latest]?.value}`);
  }

  async function close(season: Season): Promise<void> {
    const { name } = season;
    season.closed = true;
    const done = await imported({ users: [userOf(name, { active: false })] });
    if (done === undefined) return;
    season.inactive = { value: true, ...done };
    await refused(season);
  }

  const isFolded = ({ position }: Imported): boolean => {
    const { documents } = cluster.readStore;
    const version = documents.active(accountsProjection.name);
    const name = checkpointName({ name: accountsProjection.name, version: version ?? 0 });
    return (documents.checkpoint(name) ?? '') >= position;
  };

  /** Whether the read model of accounts shows an import, and has for so long that each process knows. */
  async function holds(said: Imported | undefined): Promise<boolean> {
    if (said === undefined || !isFolded(said)) return false;
    await sleep(HOLDS_MS);
    return isFolded(said);
  }

  async function refused({ name, inactive }: Season): Promise<void> {
    const isDue = await holds(inactive);
    const answer = await client.exchange(name, { method: 'GET', path: '/api/v2/me', headers: {}, body: undefined });
    simulation.marks.sometimes('an inactive user is refused', isDue && answer !== undefined && answer.status >= 400);
    if (isDue && answer !== undefined && answer.status < 300)
      found(`${name} is inactive since ${inactive?.from}, and was shown ${JSON.stringify(answer.body)}`);
  }

  async function move(): Promise<void> {
    const merchant = chance.pick(MERCHANTS);
    moved = undefined;
    const done = await imported({
      users: [userOf(MOVER, { merchant_id: merchant, permissions: ['redeem', 'unredeem', 'webhooks'] })],
    });
    if (done !== undefined) moved = { value: merchant, ...done };
  }

  async function redeem(): Promise<void> {
    const some = gifts();
    if (some.length === 0) return;
    const before = moved;
    const isDue = await holds(before);
    const path = `/api/v2/gifts/${chance.pick(some)}/redemptions`;
    const answer: Answer | undefined = await sentOnce(client, MOVER, 'POST', path, { location_id: AT_COFFEE });
    if (before === undefined || before !== moved || answer === undefined || !isDue) return;
    simulation.marks.sometimes(`a redemption by a user who has moved is answered ${answer.status}`);
    if (answer.status < 300 && before.value !== 'coffee')
      found(
        `${MOVER} works for ${before.value}, and redeemed at ${AT_COFFEE}: ${String(field(answer.body, 'data', 'id'))}`,
      );
  }

  async function act(): Promise<void> {
    const acts: (() => Promise<void>)[] = [open, move, redeem, redeem];
    if (seasons.length > 0) {
      const season = chance.pick(seasons);
      const on = (what: (one: Season) => Promise<void>) => async (): Promise<void> => what(season);
      const fillOrChange = season.pooled === undefined ? fill : changePins;
      if (season.inactive === undefined) acts.push(on(buy), on(fillOrChange), on(fillOrChange), on(drawAll), on(close));
      else acts.push(on(refused), on(refused));
    }
    await chance.pick(acts)();
  }

  return {
    start(untilMs) {
      if (!happensHere) return;
      process.start('acting', async () => {
        while (simulation.ms() < untilMs) {
          await sleep(chance.between(PAUSE.least, PAUSE.most) / times);
          await act();
        }
      });
    },
    async finish() {
      // The first one may have crashed.
      const operator = startProcess(simulation, { name: 'last importer' });
      const again = async (): Promise<void> => {
        for (const { id, ...own } of LEAVERS) {
          const done = await imported({ users: [userOf(id, own)] }, operator);
          simulation.marks.sometimes('an import of an erased user is refused', done === undefined);
        }
      };
      if (happensHere) await perform(simulation, operator, 'import leavers again', again, WITHIN_MS);
    },
    forgetSince() {
      seasons = [];
      moved = undefined;
    },
    findings: () => findings,
  };
}
