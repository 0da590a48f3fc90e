import { fileURLToPath } from 'node:url'

/**
 * Node's arguments that start svc: what scripts/test.mjs has just built, because that starts in half the time; else the sources.
 * The flag changes nothing but how often garbage is collected: that was a tenth of such a start.
 */
export const SVC: readonly string[] = process.env.SVC_TEST_ENTRY
  ? ['--min-semi-space-size=16', process.env.SVC_TEST_ENTRY]
  : ['--conditions=svc-source', fileURLToPath(new URL('../../bin/svc.js', import.meta.url))]
