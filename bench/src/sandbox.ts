import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { processes } from './sandbox-process.ts'
import { quickjs } from './sandbox-quickjs.ts'

/** The sandboxes, each compared to its basis. */
export async function* sandbox(options: Options): AsyncGenerator<Figure> {
  yield* quickjs(options)
  yield* processes(options)
}
