import { basename } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { openForReading } from './file.ts'
import type { Findings } from './inspect.ts'
import { COUNT_IN_ROW } from './rows.ts'
import { FileRefusal, wordsFor } from './file-errors.ts'

// The thread that checks a file.

const NOTHING = { spaces: [], records: 0, entries: 0 }

function findings(path: string): Findings {
  try {
    const db = openForReading(path)
    if (!db) return withProblem('STORE_EMPTY', 'it contains no store')
    try {
      return contentOf(db)
    } finally {
      db.close()
    }
  } catch (error) {
    if (error instanceof FileRefusal) return withProblem(error.refused.code, reasonOf(error))
    return withProblem('STORE_UNAVAILABLE', wordsFor(error, basename(path))[0])
  }
}

function reasonOf({ refused: { code, args } }: FileRefusal): string {
  return code === 'STORE_NEWER' ? `it has format ${args[1]}, but this program supports only format ${args[2]}` : String(args[0])
}

const withProblem = (code: string, reason: string): Findings => ({ ...NOTHING, problem: { code, reason } })

function contentOf(db: DatabaseSync): Findings {
  const single = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0]
  const found = single('PRAGMA integrity_check(1)')
  if (found !== 'ok') return withProblem('STORE_DAMAGED', `it is damaged: ${String(found).split('\n').at(-1)}`)
  for (const table of ['records', 'entries'])
    if (single(`SELECT 1 FROM ${table} WHERE NOT json_valid(value) LIMIT 1`))
      return withProblem('STORE_DAMAGED', `it is damaged: ${table} has a value that cannot be read`)
  const spaces = db.prepare('SELECT name, version FROM spaces ORDER BY name').all()
  return {
    spaces: spaces.map(({ name, version }) => ({ name: String(name), version: Number(version) })),
    records: Number(single('SELECT count(*) FROM records')),
    entries: Number(single(`SELECT coalesce(sum(${COUNT_IN_ROW}), 0) FROM entries`)),
  }
}

parentPort!.postMessage(findings(workerData as string))
