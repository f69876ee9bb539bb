/** The requests that made what lists show, gathered once for all lists of a history. */
import type { Chain } from './chains.js';
import type { Leeway } from './finding.js';
import { type History, type Observation, field, grouped, listField, textField, toldBy } from './history.js';

type ById = Map<string, Observation>;

/** What answers say of who made what. */
export class Makers {
  /** The first request whose answer has this `Gift-Position`. */
  readonly positions: ReadonlyMap<string, Observation>;
  readonly numbers: ReadonlyMap<Observation, number>;
  private readonly transactions: ById = new Map();
  private readonly gifts: ById = new Map();
  readonly redemptions: ById = new Map();
  /** The first claim of a gift by this user that was answered with 200: a second one changes nothing. */
  private readonly claims = new Map<string, ById>();
  private readonly reassigned = new Set<string>();
  private readonly claimed = new Set<string>();
  private readonly perhapsClaimed = new Set<string>();

  constructor(history: History) {
    this.numbers = new Map(history.map((observation, index) => [observation, index]));
    const positions = grouped(history, ({ answer }) => answer?.headers['gift-position']);
    this.positions = new Map([...positions].flatMap(([position, [first]]) => (first ? [[position, first]] : [])));
    for (const { operation } of history) if (operation.kind === 'reassign') this.reassigned.add(operation.gift);
    for (const observation of history) this.note(observation);
  }

  private note(observation: Observation): void {
    const { client, operation, answered } = observation;
    const answer = toldBy(observation);
    if (operation.kind === 'claim') {
      this.claimed.add(operation.gift);
      if (answer === undefined) this.perhapsClaimed.add(operation.gift);
    }
    if (answer === undefined || answered === undefined || answer.headers['idempotent-replayed'] !== undefined) return;
    const data = field(answer.body, 'data');
    const id = textField(data, 'id') ?? '';
    if (operation.kind === 'purchase' && answer.status === 201) {
      this.transactions.set(id, this.transactions.get(id) ?? observation);
      for (const gift of listField(data, 'gifts').map(String))
        this.gifts.set(gift, this.gifts.get(gift) ?? observation);
    }
    if (operation.kind === 'redeem' && answer.status === 201) this.redemptions.set(id, observation);
    if (operation.kind !== 'claim' || answer.status !== 200 || this.reassigned.has(operation.gift)) return;
    const own: ById = this.claims.get(client) ?? new Map<string, Observation>();
    this.claims.set(client, own.set(operation.gift, own.get(operation.gift) ?? observation));
  }

  /** The request that made an entry, or by which the reader got the gift, where an answer names it. */
  private of({ client, operation: { kind } }: Chain, id: string): Observation | undefined {
    if (kind === 'listTransactions') return this.transactions.get(id);
    if (kind === 'listMerchantRedemptions') return this.redemptions.get(id);
    return this.claims.get(client)?.get(id) ?? this.gifts.get(id);
  }

  /** The same, where the list is ordered by it; `undefined` also where that is not known. */
  inOrder(chain: Chain, id: string, { quietFrom = Infinity }: Leeway): Observation | undefined {
    const { operation } = chain;
    if (operation.kind !== 'listGifts') return this.of(chain, id);
    // When support gave a gift, and whether a second claim was the first one that had an effect, is not known.
    if (this.reassigned.has(id) || (chain.sent < quietFrom && this.claimed.has(id))) return undefined;
    // A buyer's list has a gift at its purchase; the list of both has it where its buyer holds it where they got it.
    if (operation.as === 'sender') return this.gifts.get(id);
    return this.perhapsClaimed.has(id) ? undefined : this.of(chain, id);
  }

  /** Whether the entry may have left a page that was still to be read for one that was read. */
  mayHaveMoved({ operation: { kind }, pages }: Chain, id: string): boolean {
    return kind === 'listGifts' && pages.length > 1 && (this.reassigned.has(id) || this.claimed.has(id));
  }

  /** What its reader made, of all that a list shows, each with the request that made it. */
  by({ client, operation }: Chain): (readonly [string, Observation])[] {
    const own = (some: ById): (readonly [string, Observation])[] =>
      [...some].filter(([, maker]) => maker.client === client);
    if (operation.kind === 'listTransactions') return own(this.transactions);
    return [...new Map([...own(this.gifts), ...(this.claims.get(client) ?? [])])];
  }
}
