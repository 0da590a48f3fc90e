import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Node's arguments that start svc: what scripts/test.mjs has just built, because that starts in half the time; else the sources.
 * The flag changes nothing but how often garbage is collected: that was a tenth of such a start.
 */
export const SVC: readonly string[] = process.env.SVC_TEST_ENTRY
  ? ['--min-semi-space-size=16', process.env.SVC_TEST_ENTRY]
  : ['--conditions=svc-source', fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url))]

/** Where processes of the tests keep compiled code: a home that is new has none. */
export const COMPILED = {
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), `svc-test-compiled-${process.getuid?.() ?? 'user'}`),
}

/** What Node is started with so that a program that imports svc has what svc itself is started from. */
export const CONDITIONS: readonly string[] = process.env.SVC_TEST_ENTRY ? [] : ['--conditions=svc-source']

/** The same for a compiler: the types that scripts/test.mjs has just written are what an author has, and are read in a third of the time. */
export const SOURCE_TYPES: { readonly customConditions?: readonly string[] } = process.env.SVC_TEST_ENTRY
  ? {}
  : { customConditions: ['svc-source'] }

/** What compilers in Go do beside their work costs a third of it: collecting garbage early, and the same types in several threads. */
export const FRUGAL = { GOGC: '400', GOMAXPROCS: '1' }
