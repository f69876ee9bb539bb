/** The proof that a gift's events are in the signed log (docs/evidence.md#bundles). */
import { useState } from 'preact/hooks';
import { useAttempt } from '../service/attempt.js';
import { get } from '../service/call.js';
import { type Bundle, check } from '../service/proof.js';
import { Download } from './download.js';
import { Fields } from './fields.js';
import { Problem } from './page.js';
import { count } from './text.js';

/** Checks the proof, and offers it as a file, with the command that checks it again elsewhere. */
export function GiftProof({ path, id }: { readonly path: string; readonly id: string }) {
  const [bundle, setBundle] = useState<Bundle>();
  const { busy, wrong, attempt } = useAttempt();
  const load = async (): Promise<void> => attempt(async () => setBundle(await get<Bundle>(`${path}/proof`)));
  if (bundle === undefined)
    return (
      <>
        {wrong === undefined ? null : <Problem>{wrong}</Problem>}
        <button type="button" class="outline" aria-busy={busy} disabled={busy} onClick={() => void load()}>
          Make the proof
        </button>
      </>
    );
  const { origin, size, root, wrong: outside } = check(bundle);
  return (
    <>
      {outside.length === 0 ? (
        <p role="status">
          All {count(bundle.events.length)} events are in the log as they are shown: this page has computed the root of
          the signed head from each of them.
        </p>
      ) : (
        <Problem>The signed head does not cover these events as they are shown: {outside.join(', ')}.</Problem>
      )}
      <Fields of={{ log: origin, events_under_the_head: size, root }} />
      <p>
        <Download of={bundle} file={`gift-${id}-proof.json`} label="Download the proof" /> and check it once more
        elsewhere, with the head’s signature and the log’s key, which must reach you by another way:{' '}
        <code>gift audit check gift-{id}-proof.json --key KEY</code>
      </p>
    </>
  );
}
