/**
 * The caller of a request, looked up at the request: the token names only session and user
 * (docs/decisions.md#sessions).
 */
import type { UserDocument } from '../../projections/accounts.js';

/** A signed-in user, or a client on its own behalf; `anonymous` on routes that need no token. */
export type Principal =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'client'; readonly clientId: string; readonly sessionId: string }
  | { readonly kind: 'user'; readonly clientId: string; readonly sessionId: string; readonly user: UserDocument };
