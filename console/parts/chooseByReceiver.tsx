/** Gifts of a purchase, chosen by those who have them: the buyer knows their people, not the ids of gifts. */
import { useId, useState } from 'preact/hooks';
import { useAttempt } from '../service/attempt.js';
import { type FoundGift, giftsOf } from '../service/finding.js';
import { plainly } from '../service/receiverLines.js';
import { Problem } from './page.js';
import { AS_TYPED } from './text.js';

interface ChooseByReceiverProps {
  readonly transaction: string;
  /** Recorded with each search. */
  readonly reason: string;
  readonly choose: (gifts: readonly FoundGift[]) => void;
}

export function ChooseByReceiver({ transaction, reason, choose }: ChooseByReceiverProps) {
  const id = useId();
  const [typed, setTyped] = useState('');
  const { busy, wrong, attempt } = useAttempt();
  const [unknown, setUnknown] = useState<readonly string[]>([]);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setUnknown([]);
    await attempt(async () => {
      const receivers = typed.split('\n').flatMap((line) => plainly(line) || []);
      const found: FoundGift[] = [];
      const none: string[] = [];
      for (const receiver of receivers) {
        const gifts = await giftsOf(receiver, transaction, reason);
        found.push(...gifts);
        if (gifts.length === 0) none.push(receiver);
      }
      choose(found);
      setUnknown(none);
    });
  };
  return (
    <details class="action">
      <summary role="button" class="outline secondary">
        Choose by receiver
      </summary>
      <form onSubmit={(event) => void submit(event)}>
        <label for={id}>Receivers</label>
        <textarea
          id={id}
          rows={4}
          required
          {...AS_TYPED}
          value={typed}
          aria-describedby={`${id}-hint`}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        <small id={`${id}-hint`}>
          A number, username or user id in each line. Each search leaves a record with the reason of this list.
        </small>
        {wrong === undefined ? null : <Problem>{wrong}</Problem>}
        {unknown.length === 0 ? null : <p role="status">No gift of this purchase is theirs: {unknown.join(', ')}.</p>}
        <button type="submit" aria-busy={busy} disabled={busy}>
          Choose their gifts
        </button>
      </form>
    </details>
  );
}
