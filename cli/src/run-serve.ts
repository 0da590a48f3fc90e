import process from 'node:process'
import type { ServeOptions } from './serve-flags.ts'

/** Serves until the server ends, then exits: nothing can keep the process alive. */
export async function runServe(options: ServeOptions): Promise<never> {
  if (options.stdio === true) process.exit(await (await import('./serve-stdio.ts')).serveStdio(options))
  process.exit(await (await import('./serve.ts')).serve(options))
}
