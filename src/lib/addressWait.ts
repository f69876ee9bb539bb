/**
 * How long Node tries one of several addresses of a server before the next, in milliseconds. After its own 250 ms it
 * gives up addresses on the other side of the world, and so the server; a lost packet is repeated after a second.
 */
export const ADDRESS_WAIT_MS = 3_000;
