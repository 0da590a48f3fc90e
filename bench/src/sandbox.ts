import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { processes } from './sandbox-process.ts'
import { quickjs } from './sandbox-quickjs.ts'

/** The sandboxes, each against what it is made of. */
export async function* sandbox(options: Options): AsyncGenerator<Figure> {
  yield* quickjs(options)
  yield* processes(options)
}
