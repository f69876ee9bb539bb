/** Looked up anew for each request (docs/decisions.md#sessions). */
import type { UserDocument } from '../../projections/accounts.js';

export type Principal =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'client'; readonly clientId: string; readonly sessionId: string }
  | { readonly kind: 'user'; readonly clientId: string; readonly sessionId: string; readonly user: UserDocument };
