/** One field for whatever a caller, a log or a colleague has named. */
import { useId, useRef, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { Page, Problem } from '../parts/page.js';
import { messageOf } from '../service/attempt.js';
import { candidatesOf, type Candidate, type Found } from '../service/finding.js';
import { plainly } from '../service/receiverLines.js';
import { FoundRows } from '../parts/foundRows.js';
import { AS_TYPED } from '../parts/text.js';

type Search =
  | { readonly state: 'searching' }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'found'; readonly as: Candidate; readonly found: Found }
  | {
      readonly state: 'none';
      readonly tried: readonly Candidate[];
      /** Searches that need a reason, where none was given. */
      readonly untried: readonly Candidate[];
    };

export function Find() {
  const id = useId();
  const [text, setText] = useState('');
  const [reason, setReason] = useState('');
  const [search, setSearch] = useState<Search>();
  /** Number of the latest search, or of the text that was typed since. */
  const latest = useRef(0);
  const candidates = candidatesOf(plainly(text));
  // An id of a gift or a transaction is found without a reason.
  const needsReason = candidates[0]?.needsReason ?? false;
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const own = ++latest.current;
    // An answer that comes after another text was typed must not be shown as what is known of that one.
    const show = (after: Search): void => (own === latest.current ? setSearch(after) : undefined);
    show({ state: 'searching' });
    try {
      const tried = candidates.filter((one) => !one.needsReason || reason.trim() !== '');
      for (const as of tried) {
        const found = await as.find(reason.trim());
        if (own !== latest.current) return;
        if (found !== undefined) return show({ state: 'found', as, found });
      }
      show({ state: 'none', tried, untried: candidates.filter((one) => !tried.includes(one)) });
    } catch (error) {
      show({ state: 'failed', message: messageOf(error) });
    }
  };
  return (
    <Page
      title="Find"
      lead="A gift’s id or shortcode, a transaction, a number, a username, a charge, a message’s id, a request’s id, a redemption, an order’s reference, or a user’s id."
    >
      <search>
        <form onSubmit={(event) => void submit(event)}>
          <label for={`${id}-text`}>What was named</label>
          <input
            id={`${id}-text`}
            type="search"
            required
            {...AS_TYPED}
            maxLength={300}
            value={text}
            onInput={({ currentTarget }) => {
              setText(currentTarget.value);
              latest.current++;
              setSearch(undefined);
            }}
          />
          <label for={`${id}-reason`}>Reason{needsReason ? '' : ' (optional)'}</label>
          <input
            id={`${id}-reason`}
            required={needsReason}
            autocomplete="off"
            maxLength={500}
            value={reason}
            aria-describedby={`${id}-hint`}
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
          <small id={`${id}-hint`}>A search for a person leaves a record with its reason.</small>
          <button type="submit" aria-busy={search?.state === 'searching'} disabled={search?.state === 'searching'}>
            Find
          </button>
        </form>
      </search>
      {search === undefined ? null : <Result search={search} />}
      <p>
        <Link href="/erasures">Requested erasures</Link>
      </p>
    </Page>
  );
}

function Result({ search }: { readonly search: Search }) {
  if (search.state === 'searching') return <p role="status">Searching…</p>;
  if (search.state === 'failed') return <Problem>{search.message}</Problem>;
  if (search.state === 'none')
    return (
      <p role="status">
        Nothing was found. The text was taken for {namesOf(search.tried)}.
        {search.untried.length === 0 ? null : ` With a reason it is also taken for ${namesOf(search.untried)}.`}
      </p>
    );
  return (
    <section aria-label="What was found">
      <p role="status">Taken for {search.as.name}.</p>
      <FoundRows found={search.found} />
    </section>
  );
}

const namesOf = (candidates: readonly Candidate[]): string => candidates.map(({ name }) => name).join(', then for ');
