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
  /** Bytes allocated so far: WebAssembly never frees memory. */
  taken(): number
  /** Returns a fresh world, prepared in advance or made now. */
  world(): World
  /** Makes the next world in advance. */
  prepare(): void
}

/** One global object with its runtime. */
export interface World extends Disposable {
  readonly context: QuickJSContext
  /** The prelude: a function to call with the host's functions. */
  readonly prelude: QuickJSHandle
  /** The deadline, in milliseconds of `performance.now()`. */
  until: number
}

const PAGE = 65_536
/** The engine is built to start with 16 MiB. */
const INITIAL_PAGES = 256
/** Bytes of the guest's stack. It is smaller than V8's stack of the thread: an overflow of V8's stack could not be caught. */
const STACK = 262_144

// its types are those of CommonJS, where the default export is one level deeper
const variant = packed as unknown as QuickJSSyncVariant
// the outcome of the run reports what the engine would print when it aborts
const SILENT: object = { print() {}, printErr() {} }

export async function createEngine(module: WebAssembly.Module, memoryBytes: number): Promise<Engine> {
  const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: Math.floor(memoryBytes / PAGE) })
  // the engine's own limit counts only a part of its allocations, so the size of the memory is the limit
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
