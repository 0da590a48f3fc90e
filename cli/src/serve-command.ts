import type { ServeOptions } from './serve-flags.ts'

/** Serves until it is told to end; then nothing that a worker left may hold this process. */
export async function runServe(options: ServeOptions): Promise<never> {
  if (options.stdio === true) process.exit(await (await import('./serve-stdio.ts')).serveStdio(options))
  process.exit(await (await import('./serve.ts')).serve(options))
}
