/** Looked up anew for each request (docs/decisions.md#sessions). */
import type { Role } from '../../domain/account.js';
import type { UserDocument } from '../../projections/accounts.js';

export type Principal =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'client'; readonly clientId: string; readonly sessionId: string }
  | {
      readonly kind: 'user';
      readonly clientId: string;
      readonly sessionId: string;
      readonly user: UserDocument;
      /** The client serves no staff. */
      readonly staff?: false;
    };

export const isStaffClient = (principal: Principal): boolean => principal.kind === 'user' && principal.staff !== false;

/** What the caller may do by roles; who is staff, whatever the client, is said by `user.roles`. */
export function rolesOf(principal: Principal): readonly Role[] {
  return principal.kind === 'user' && isStaffClient(principal) ? principal.user.roles : [];
}
