// QuickJS by hand in a thread: a new context for each script, with a time limit, and optionally its own module instance with
// limited memory.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parentPort } from 'node:worker_threads'
import variant from '@jitl/quickjs-wasmfile-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'

const bytes = readFileSync(fileURLToPath(import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm')))
const wasmModule = await WebAssembly.compile(bytes)
const instance = () => {
  const wasmMemory = new WebAssembly.Memory({ initial: 256, maximum: 8192 })
  return newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule, wasmMemory }))
}
const kept = await instance()

parentPort.on('message', async ({ code, fresh }) => {
  const quickjs = fresh ? await instance() : kept
  const runtime = quickjs.newRuntime()
  runtime.setMaxStackSize(262_144)
  const until = performance.now() + 30_000
  runtime.setInterruptHandler(() => performance.now() > until)
  const context = runtime.newContext()
  const value = context.unwrapResult(context.evalCode(code)).consume(handle => context.dump(handle))
  context.dispose()
  runtime.dispose()
  parentPort.postMessage({ value })
})
parentPort.postMessage({ ready: true })
