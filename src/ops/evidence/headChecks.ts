/** Holds a tree that grows over a log against signed heads, in the order of their sizes. */
import type { Position } from '../../ports/eventStore.js';
import type { TreeBuilder } from '../../runtime/evidence/treeBuilder.js';
import type { HeadToCheck } from './headsToCheck.js';
import { type Findings, FindingsList, type WrongHead } from './verification.js';

/** What of the heads up to a size of the tree is known, where none of them is wrong. */
export interface HeadsSoFar {
  readonly heads: number;
  readonly agreed: number;
  readonly largest: number;
  readonly verified: number;
  readonly unverified: number;
  readonly uncovered: Findings<WrongHead>;
  /** Of the last one in the log; null: there was none yet. */
  readonly position: Position | null;
  /** Of those that were kept outside, as `identityOf` says. */
  readonly outside: readonly string[];
}

export const identityOf = ({ origin, size, root }: HeadToCheck): string =>
  `${origin} ${size} ${Buffer.from(root).toString('base64')}`;

export class HeadChecks {
  readonly wrong = new FindingsList<WrongHead>();
  heads = 0;
  /** Of the last head that the tree had the root of. */
  agreed = 0;
  /** Of the largest one. */
  largest = 0;
  /** The first whose root the tree had not. */
  firstWrong: HeadToCheck | undefined;
  /** `check` is to be called at this size; infinite: no head is left. */
  nextSize = 0;
  readonly #inLog: AsyncIterator<HeadToCheck, void>;
  readonly #outside: HeadToCheck[];
  /** That the log agrees with, and a known key signed. */
  verified = 0;
  /** That the log agrees with, and none of the known keys signed. */
  unverified = 0;
  /** Of these, those that no verified one covers yet. */
  #uncovered = new FindingsList<WrongHead>();
  #coming: HeadToCheck | undefined;
  #started = false;
  #position: Position | null = null;
  readonly #judgedOutside: string[] = [];

  /**
   * @param inLog the heads in the log behind a position
   * @param judged of the heads that were judged before: only others are
   */
  constructor(
    inLog: (after: Position | undefined) => AsyncGenerator<HeadToCheck, void>,
    outside: readonly HeadToCheck[],
    judged?: HeadsSoFar,
  ) {
    this.#inLog = inLog(judged?.position ?? undefined);
    this.#outside = outside
      .filter((head) => judged?.outside.includes(identityOf(head)) !== true)
      .toSorted((a, b) => a.size - b.size);
    if (judged === undefined) return;
    this.heads = judged.heads;
    [this.agreed, this.largest] = [judged.agreed, judged.largest];
    [this.verified, this.unverified] = [judged.verified, judged.unverified];
    this.#uncovered.addAll(judged.uncovered);
    this.#position = judged.position;
    this.#judgedOutside.push(...judged.outside);
  }

  /** `undefined`: one of them is wrong, or none is left: the next one that is signed may be smaller than the tree. */
  soFar(): HeadsSoFar | undefined {
    if (this.wrong.found > 0 || !Number.isFinite(this.nextSize)) return undefined;
    const { heads, agreed, largest, verified, unverified } = this;
    const [uncovered, outside] = [this.#uncovered.findings(), [...this.#judgedOutside]];
    return { heads, agreed, largest, verified, unverified, uncovered, position: this.#position, outside };
  }

  /** @throws UnavailableError */
  async check(tree: TreeBuilder): Promise<void> {
    if (!this.#started) await this.#take();
    this.#started = true;
    for (let head = this.#next(); head !== undefined && head.size <= tree.size; head = this.#next()) {
      this.#judge(head, tree);
      await this.#drop(head);
    }
  }

  /** Heads larger than the log. @param through the log's last position that was read: it may have grown since */
  async finish(tree: TreeBuilder, through: Position | undefined): Promise<void> {
    for (let head = this.#next(); head !== undefined; head = this.#next()) {
      if (head.position === undefined || head.position <= (through ?? '')) {
        this.heads += 1;
        this.#note(head, head.fault ?? `it covers ${head.size} events, and the log has ${tree.size}`);
      }
      await this.#drop(head);
    }
    this.wrong.addAll(this.#uncovered);
  }

  #judge(head: HeadToCheck, tree: TreeBuilder): void {
    this.heads += 1;
    if (head.fault !== undefined) this.#note(head, head.fault);
    else if (head.size < tree.size) this.#note(head, 'it stands behind a larger one');
    else if (!tree.root().equals(head.root))
      this.#note(head, `it is of other events than the log's first ${head.size}`);
    else {
      [this.agreed, this.largest] = [head.size, Math.max(this.largest, head.size)];
      this.#vouch(head);
    }
  }

  #vouch({ from, size, verified }: HeadToCheck): void {
    if (verified === true) {
      this.verified += 1;
      this.#uncovered = new FindingsList();
    } else if (verified === false) {
      this.unverified += 1;
      this.#uncovered.add({ from, size, why: 'no known key has signed it, nor a head that covers it' });
    }
  }

  #note(head: HeadToCheck, why: string): void {
    const unsigned = head.verified === false ? 'no known key has signed it, and ' : '';
    this.wrong.add({ from: head.from, size: head.size, why: `${unsigned}${why}` });
    // A head that is itself no signed one says nothing of the log.
    if (head.fault !== undefined || head.verified === false) return;
    this.firstWrong ??= head;
    this.largest = Math.max(this.largest, head.size);
  }

  #next(): HeadToCheck | undefined {
    const [outside] = this.#outside;
    const coming = this.#coming;
    return outside === undefined || (coming !== undefined && coming.size <= outside.size) ? coming : outside;
  }

  async #drop(head: HeadToCheck): Promise<void> {
    if (head === this.#coming) {
      this.#position = head.position ?? null;
      await this.#take();
    } else {
      this.#outside.shift();
      this.#judgedOutside.push(identityOf(head));
    }
    this.nextSize = this.#next()?.size ?? Number.POSITIVE_INFINITY;
  }

  async #take(): Promise<void> {
    this.#coming = (await this.#inLog.next()).value ?? undefined;
    this.nextSize = this.#next()?.size ?? Number.POSITIVE_INFINITY;
  }

  /** Releases the feed of heads. */
  async close(): Promise<void> {
    await this.#inLog.return?.();
  }
}
