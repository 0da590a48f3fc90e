import type { DatabaseSync } from 'node:sqlite'
import { STREAM } from './file.ts'
import { Known } from './known.ts'
import { expect } from './trouble.ts'

/** The streams of all logs, as the writer changes them inside a transaction. */
export interface Entries {
  /** The seq of the last entry then. */
  append(at: number, log: number, id: string, ifLength: number, texts: readonly string[]): number
  drop(log: number, id: string): number
  /** The numbers of the streams that were appended to since this was last asked. */
  takeStreams(): number[]
  /** What is known of streams may not be so any more: another process has written, or something was undone. */
  forget(): void
}

/** A stream, and how long it is. */
interface Stream {
  readonly id: number
  length: number
}

/** Prepares the statements of one connection. */
export function createEntries(db: DatabaseSync): Entries {
  const s = statements(db)
  // Looking for a stream took as long as writing to it: whoever appends to one does so again.
  const known = new Known<Stream>()
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
  /** A stream that is not known is made at once where it may have to be: most are appended to for the first time then. */
  const streamFor = (log: number, id: string, ifLength: number) =>
    (ifLength > 0 || known.has(keyOf(log, id)) ? undefined : begin(log, id)) ?? find(log, id)
  const write = (stream: Stream, texts: readonly string[]) => {
    let at = 0
    for (; at + 1 < texts.length; at += 2, stream.length += 2) s.both.run(stream.id, stream.length, texts[at]!, texts[at + 1]!)
    if (at < texts.length) s.append.run(stream.id, ++stream.length, texts[at]!)
    streams.push(stream.id)
    return stream.length
  }
  return {
    append(at, log, id, ifLength, texts) {
      const stream = texts.length === 0 ? find(log, id) : streamFor(log, id, ifLength)
      const length = stream?.length ?? 0
      expect(at, ifLength, length)
      return stream && texts.length > 0 ? write(stream, texts) : length
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
  append: db.prepare('INSERT INTO entries(id, value) VALUES ((? << 32) | ?, ?)'),
  // most appends are of two: what came of a step, and that the next begins
  both: db.prepare('INSERT INTO entries(id, value) VALUES ((?1 << 32) | (?2 + 1), ?3), ((?1 << 32) | (?2 + 2), ?4)'),
  dropEntries: db.prepare('DELETE FROM entries WHERE id > (?1 << 32) AND id < ((?1 + 1) << 32)'),
  dropStream: db.prepare('DELETE FROM streams WHERE id = ?'),
})
