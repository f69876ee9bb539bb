/** What is wrong, the greatest harm first (docs/support.md#what-is-wrong). Nothing wrong is a calm page. */
import type { Finding } from '../../src/ops/diagnosis/index.js';
import { Page, Shown } from '../parts/page.js';
import { get } from '../service/call.js';
import { useLoaded } from '../service/loaded.js';

/** A diagnosis takes two seconds after a minute without one, so it is not requested more often. */
const EVERY_MS = 60_000;

const HARMS: Readonly<Record<Finding['harm'], string>> = {
  money: 'Harms money',
  people: 'Harms people with gifts',
  partners: 'Harms clients and merchants',
  evidence: 'Harms evidence',
  risk: 'A risk: harms nobody yet',
};

export function Now() {
  const found = useLoaded(
    async (signal) => get<{ readonly data: readonly Finding[] }>('ops/diagnosis', { signal }),
    [],
    {
      everyMs: EVERY_MS,
    },
  );
  return (
    <Page title="Now">
      <Shown of={found}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="calm">Nothing is wrong.</p>
          ) : (
            <ol class="findings">
              {data.map((finding) => (
                <li key={`${finding.code} ${finding.what}`}>
                  <article>
                    <p class={`harm ${finding.harm}`}>{HARMS[finding.harm]}</p>
                    <h2>{finding.what}</h2>
                    <p>{finding.means}</p>
                    <p>
                      <code>{finding.command}</code>
                    </p>
                  </article>
                </li>
              ))}
            </ol>
          )
        }
      </Shown>
    </Page>
  );
}
