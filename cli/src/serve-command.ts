import { serve } from './serve.ts'
import type { ServeOptions } from './serve-flags.ts'

/** Serves until it is told to end; then nothing that a worker left may hold this process. */
export async function runServe(options: ServeOptions): Promise<never> {
  process.exit(await serve(options))
}
