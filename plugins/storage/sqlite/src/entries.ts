import type { DatabaseSync } from 'node:sqlite'
import { STREAM } from './file.ts'
import { RowCache, type Row } from './rows.ts'
import { expect } from './file-errors.ts'

/** The streams of all logs, changed by the writer inside a transaction. */
export interface Entries {
  /** Returns the seq of the last entry. */
  append(at: number, log: number, id: string, ifLength: number, rows: readonly Row[]): number
  drop(log: number, id: string): number
  /** The numbers of the streams that were appended to since the last call. */
  takeStreams(): number[]
  /** Clears the cache: another process has written, or something was rolled back. */
  forget(): void
}

/** A stream and its length. */
interface Stream {
  readonly id: number
  length: number
}

/** Prepares the statements of one connection. */
export function createEntries(db: DatabaseSync): Entries {
  const s = statements(db)
  // Finding a stream takes as long as writing to it, and a writer appends again soon.
  const known = new RowCache<Stream>()
  let streams: number[] = []

  const find = (log: number, id: string) => {
    const key = keyOf(log, id)
    const there = known.get(key)
    const row = there ? undefined : s.find.get(log, id)
    return row ? known.keep(key, { id: Number(row.id), length: Number(row.length) }) : there
  }
  const begin = (log: number, id: string) => {
    const { changes, lastInsertRowid } = s.begin.run(log, id)
    return changes === 0 ? undefined : known.keep(keyOf(log, id), { id: Number(lastInsertRowid), length: 0 })
  }
  /** Creates an unknown stream at once if it can be new: most streams are. */
  const streamFor = (log: number, id: string, ifLength: number) =>
    (ifLength > 0 || known.has(keyOf(log, id)) ? undefined : begin(log, id)) ?? find(log, id)
  const write = (stream: Stream, rows: readonly Row[]) => {
    for (const [count, text] of rows) s.append.run(stream.id, (stream.length += count), text)
    streams.push(stream.id)
    return stream.length
  }
  return {
    append(at, log, id, ifLength, rows) {
      const stream = rows.length === 0 ? find(log, id) : streamFor(log, id, ifLength)
      const length = stream?.length ?? 0
      expect(at, ifLength, length)
      return stream && rows.length > 0 ? write(stream, rows) : length
    },
    drop(log, id) {
      const stream = find(log, id)
      if (!stream) return 0
      known.delete(keyOf(log, id))
      s.dropEntries.run(stream.id)
      s.dropStream.run(stream.id)
      return 0
    },
    takeStreams() {
      const were = streams
      streams = []
      return were
    },
    forget: () => known.clear(),
  }
}

const keyOf = (log: number, id: string) => `${log}/${id}`

const statements = (db: DatabaseSync) => ({
  find: db.prepare(STREAM),
  begin: db.prepare('INSERT INTO streams(log, name) VALUES (?, ?) ON CONFLICT DO NOTHING'),
  append: db.prepare('INSERT INTO entries(rowid, value) VALUES ((? << 32) | ?, ?)'),
  dropEntries: db.prepare('DELETE FROM entries WHERE rowid > (?1 << 32) AND rowid < ((?1 + 1) << 32)'),
  dropStream: db.prepare('DELETE FROM streams WHERE id = ?'),
})
