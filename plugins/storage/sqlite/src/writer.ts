import { basename } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { settle } from './counts-file.ts'
import type { StoredRow } from './rows.ts'
import { createSession, type GroupDone } from './session.ts'
import { isBusy, wordsFor } from './file-errors.ts'
import { type WriterTask, type NumberedTask, packAnswers, type Refused, type ToWriter, unpack, type WriterData } from './wire.ts'

// The writer's thread. While one commit waits for the disk, the next jobs gather at the port for the next commit.

/** Maximum number of jobs, and of characters of values, in one commit. */
const GROUP = 1000
const GROUP_CHARS = 32 * 1024 * 1024
const RETRY_MS = 1

const data = workerData as WriterData
const { path, busyMs } = data
const port = parentPort!
const session = createSession(data)
const queue: NumberedTask[] = []
let working = false
let closing = false

Error.stackTraceLimit = 0
port.on('message', (message: ToWriter) => {
  take(message)
  if (!working) void work()
})

function take(message: ToWriter): void {
  if (message === 'close') closing = true
  else if ('settle' in message) settle(message.settle)
  else for (const job of unpack(message)) queue.push(job)
}

async function work(): Promise<void> {
  working = true
  for (gather(); queue.length > 0; gather()) {
    const { group, done } = await commit()
    const { answers, ...rest } = done
    for (const words of packAnswers(group, answers, rest)) port.postMessage(words)
  }
  working = false
  if (closing) end()
}

function gather(): void {
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) take(next.message as ToWriter)
}

function cut(): NumberedTask[] {
  let chars = 0
  let count = 0
  while (count < queue.length && count < GROUP && chars < GROUP_CHARS) chars += charsOf(queue[count++]![1])
  return queue.splice(0, count)
}

const charsOf = (job: WriterTask) =>
  job[0] === 'batch'
    ? job[1].reduce((sum, op) => sum + (op[0] === 'put' ? op[3].length : op[0] === 'append' ? rowsChars(op[4]) : 0), 0)
    : 0
const rowsChars = (rows: readonly StoredRow[]) => rows.reduce((sum, [, text]) => sum + text.length, 0)

/** While another process has the file, new jobs join the group: fewer commits wait less for each other. */
async function commit(): Promise<{ readonly group: NumberedTask[]; readonly done: GroupDone }> {
  const until = performance.now() + busyMs
  for (;;) {
    const group = cut()
    try {
      return { group, done: session.run(group.map(([, job]) => job)) }
    } catch (error) {
      if (!isBusy(error)) throw error
      // During the close, no caller waits for an answer.
      if (closing || performance.now() >= until)
        return { group, done: { answers: group.map(() => busy(error)), watched: false, generation: 0 } }
      queue.unshift(...group)
    }
    await setTimeout(RETRY_MS)
    gather()
  }
}

function busy(error: unknown): Refused {
  return { code: 'STORE_UNAVAILABLE', args: [...wordsFor(error, basename(path))] }
}

function end(): void {
  try {
    session.close()
  } finally {
    port.close()
  }
}
