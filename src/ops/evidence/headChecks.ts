/** Holds a tree that grows over a log against signed heads, in the order of their sizes. */
import type { Position } from '../../ports/eventStore.js';
import type { TreeBuilder } from '../../runtime/evidence/treeBuilder.js';
import type { HeadToCheck } from './headsToCheck.js';
import { FindingsList, type WrongHead } from './verification.js';

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

  constructor(inLog: AsyncGenerator<HeadToCheck, void>, outside: readonly HeadToCheck[]) {
    this.#inLog = inLog;
    this.#outside = outside.toSorted((a, b) => a.size - b.size);
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
    if (head === this.#coming) await this.#take();
    else this.#outside.shift();
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
