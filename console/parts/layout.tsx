/** The frame around all pages: where one can go, who is signed in. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { session, signOut } from '../service/session.js';
import { Problem } from './page.js';

export interface Destination {
  readonly path: string;
  readonly name: string;
}

interface LayoutProps {
  readonly destinations: readonly Destination[];
  readonly children: ComponentChildren;
}

export function Layout({ destinations, children }: LayoutProps) {
  const [location] = useLocation();
  const { value } = session;
  const [wrong, setWrong] = useState<string>();
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('h1')?.focus()}>
        Skip to the page
      </button>
      <header>
        <nav aria-label="Console">
          <ul>
            {destinations.map(({ path, name }) => (
              <li key={path}>
                <Link href={path} aria-current={isAt(location, path) ? 'page' : undefined}>
                  {name}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        {value.state === 'in' ? (
          <p class="who">
            {value.user} ({value.roles.join(', ')}){' '}
            <button type="button" class="outline secondary small" onClick={() => void signOut().then(setWrong)}>
              Sign out
            </button>
          </p>
        ) : null}
      </header>
      {wrong === undefined ? null : <Problem>{wrong}</Problem>}
      {/* It stays, with what was typed, while somebody has to sign in again; nobody else is to read it. */}
      <main hidden={value.state === 'out'}>{children}</main>
    </>
  );
}

const isAt = (location: string, path: string): boolean =>
  path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`);
