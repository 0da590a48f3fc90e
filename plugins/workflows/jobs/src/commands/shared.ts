import { Args } from '@svc/cli/command'
import { systemContext } from '@svc/core'
import { type CommandContext, type Json, Store } from '@svc/core/contracts'
import { storeForgets } from '@svc/plugin-kit'
import { askServer } from '@svc/runtime'
import { type JobsQuestion, TOPIC } from '../answers.ts'

const HINT = 'Configure a durable store, such as @svc/plugin-store-sqlite, or start the server first'

/** The answer of the running server, or of the plugins in this process if none runs. Throws STORE_FORGETS. */
export async function askJobs<T>(
  call: CommandContext,
  { port }: { readonly port?: number | undefined },
  question: JobsQuestion
): Promise<T> {
  const ctx = systemContext(call.signal, `svc jobs ${question.do}`)
  const message = question as unknown as Json
  const answers = askServer(call, { topic: TOPIC, message, port }, ctx, async host => {
    const { durable, kind } = await host.service(Store).probe(ctx)
    if (!durable) throw storeForgets(kind, 'this command cannot see the jobs of a server', HINT)
  })
  return (await Array.fromAsync(answers))[0] as T
}

export const JOB_ARG = { id: Args.string({ description: 'Id of a job', required: true, ignoreStdin: true }) }

/** `2026-11-24 02:31:07Z`. */
export const timeText = (ms: number | undefined): string =>
  ms === undefined
    ? ''
    : new Date(ms)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z')

/** A record for `--json`: keys in snake_case, times as text. Data of callers (`input`, `result`, `details`) stays as it is. */
export function jsonRecord(record: object): object {
  return Object.fromEntries(
    Object.entries(record).map(([key, value]) => [
      key.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`),
      TIMES.has(key) ? new Date(value as number).toISOString() : value,
    ])
  )
}

const TIMES: ReadonlySet<string> = new Set(['createdAt', 'startedAt', 'finishedAt', 'due', 'at'])
