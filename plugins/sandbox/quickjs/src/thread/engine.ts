import packed from '@jitl/quickjs-wasmfile-release-sync'
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
} from 'quickjs-emscripten-core'
import { blocked } from './failure.ts'
import { PRELUDE } from './prelude.ts'

/** An engine with a memory of its own, for one tenant. */
export interface Engine {
  readonly memoryBytes: number
  /** Bytes that it has taken so far: WebAssembly gives none back. */
  taken(): number
  /** A world in which nothing has run yet; it may have been made before. */
  world(): World
  /** Makes the next world before it is asked for. */
  prepare(): void
}

/** One global object and all that hangs on it. */
export interface World extends Disposable {
  readonly context: QuickJSContext
  /** The prelude: to be called with the host's functions. */
  readonly prelude: QuickJSHandle
  /** Milliseconds of `performance.now()` after which nothing runs any more. */
  until: number
}

const PAGE = 65_536
/** The engine is built to begin with 16 MiB. */
const INITIAL_PAGES = 256
/** Bytes of the guest's stack: less than what V8 gives the thread for it, which nobody could catch. */
const STACK = 262_144

// Its types are those of CommonJS, where the default is one level deeper.
const variant = packed as unknown as QuickJSSyncVariant
// What it would write as it dies is told by its end.
const SILENT: object = { print() {}, printErr() {} }

export async function createEngine(module: WebAssembly.Module, memoryBytes: number): Promise<Engine> {
  const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: Math.floor(memoryBytes / PAGE) })
  // The engine's own limit counts a part of what is taken: the memory is the limit.
  const quickjs = await newQuickJSWASMModuleFromVariant(
    newVariant(variant, { wasmModule: module, wasmMemory, emscriptenModule: SILENT })
  )
  let ready: World | undefined
  return {
    memoryBytes,
    taken: () => wasmMemory.buffer.byteLength,
    world() {
      const world = ready ?? createWorld(quickjs)
      ready = undefined
      return world
    },
    prepare() {
      ready ??= createWorld(quickjs)
    },
  }
}

function createWorld(quickjs: QuickJSWASMModule): World {
  const runtime = quickjs.newRuntime()
  runtime.setMaxStackSize(STACK)
  const context = runtime.newContext()
  const prelude = context.unwrapResult(context.evalCode(PRELUDE, 'sandbox', 0))
  const world = {
    context,
    prelude,
    until: Number.POSITIVE_INFINITY,
    [Symbol.dispose]() {
      prelude.dispose()
      context.dispose()
      runtime.dispose()
    },
  }
  runtime.setInterruptHandler(() => performance.now() > world.until)
  runtime.setModuleLoader(name => ({ error: blocked(`import of "${name.slice(0, 100)}"`) }))
  return world
}
