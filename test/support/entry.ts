import { fileURLToPath } from 'node:url'

/** Node's arguments that start svc: what scripts/test.mjs has just built, because that starts in half the time; else the sources. */
export const SVC: readonly string[] = process.env.SVC_TEST_ENTRY
  ? [process.env.SVC_TEST_ENTRY]
  : ['--conditions=svc-source', fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url))]
