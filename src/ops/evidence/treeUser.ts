import type { Caller } from '../../ports/eventStore.js';

/** Appends the events of the tree. */
export const TREE_USER: Caller = { user: 'system:tree' };
