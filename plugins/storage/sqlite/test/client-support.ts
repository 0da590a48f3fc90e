import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { SPACE } from './support.ts'

/** What scripts/test.mjs has built starts faster. */
const CONDITIONS = process.env.SVC_TEST_ENTRY ? [] : ['--conditions=svc-source']

const CLIENT = new URL('./children/client.ts', import.meta.url)

/** Starts a process on the file; it is killed at the latest with the test. */
export async function client(
  path: string,
  task: string,
  name = 'child'
): Promise<{ child: ChildProcess; said: unknown[]; exited: Promise<unknown[]>; next(): Promise<unknown> } & Disposable> {
  const child = fork(CLIENT, [path, JSON.stringify(SPACE), task, name], { execArgv: [...CONDITIONS] })
  const exited = once(child, 'exit')
  const said: unknown[] = []
  child.on('message', message => said.push(message))
  let taken = 0
  const next = async () => {
    while (taken === said.length) {
      await Promise.race([once(child, 'message'), exited])
      if (taken === said.length && !child.connected) throw new Error(`the process ended after it said ${String(said.at(-1))}`)
    }
    return said[taken++]
  }
  await next()
  return { child, said, exited, next, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}
