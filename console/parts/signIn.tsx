/** Sign-in. It lies over the page when a session has ended, so that what was typed below it stays. */
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { session, signIn } from '../service/session.js';
import { Problem } from './page.js';
import { AS_TYPED } from './text.js';

export function SignIn() {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [wrong, setWrong] = useState<string>();
  const [busy, setBusy] = useState(false);
  const { value } = session;
  const isOut = value.state === 'out';
  // Closed, not taken away, and opened before the page is hidden: the focus goes back to where it was.
  useLayoutEffect(() => {
    if (isOut) dialog.current?.showModal();
    else {
      dialog.current?.close();
      if (document.activeElement === document.body) document.querySelector('h1')?.focus();
    }
  }, [isOut]);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const fault = await signIn(username, password);
    setWrong(fault);
    setBusy(false);
    if (fault === undefined) setPassword('');
  };
  return (
    <dialog
      ref={dialog}
      aria-labelledby={`${id}-title`}
      onClose={() => session.value.state === 'out' && dialog.current?.showModal()}
    >
      <article>
        <h2 id={`${id}-title`}>Sign in to the Gift Commerce console</h2>
        {value.state !== 'out' || value.why === '' ? null : <p role="status">{value.why}</p>}
        <form onSubmit={(event) => void submit(event)}>
          <label for={`${id}-name`}>Username</label>
          <input
            id={`${id}-name`}
            {...AS_TYPED}
            autocomplete="username"
            required
            value={username}
            onInput={({ currentTarget }) => setUsername(currentTarget.value)}
          />
          <label for={`${id}-password`}>Password</label>
          <input
            id={`${id}-password`}
            type="password"
            autocomplete="current-password"
            required
            value={password}
            onInput={({ currentTarget }) => setPassword(currentTarget.value)}
          />
          {wrong === undefined ? null : <Problem>{wrong}</Problem>}
          <button type="submit" aria-busy={busy} disabled={busy}>
            Sign in
          </button>
        </form>
      </article>
    </dialog>
  );
}
