// Group commit: work that has gathered since the last commit is in the next one, with full durability.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(workerData.file)
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
db.exec(`
CREATE TABLE records(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, value TEXT NOT NULL) STRICT;
CREATE TABLE places(idx INTEGER NOT NULL, position TEXT NOT NULL, record INTEGER NOT NULL, PRIMARY KEY(idx, position)) STRICT, WITHOUT ROWID;
CREATE TABLE streams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, length INTEGER NOT NULL) STRICT;
CREATE TABLE entries(id INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;
`)
const record = db.prepare('INSERT INTO records(key, version, value) VALUES (?, 1, ?)')
const place = db.prepare('INSERT INTO places VALUES (?, ?, ?)')
const stream = db.prepare('INSERT INTO streams(name, length) VALUES (?, 1)')
const entry = db.prepare('INSERT INTO entries(id, value) VALUES ((? << 32) | 1, ?)')
const words = workerData.mode === 'search' && createWords()
const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]

function write(turns) {
  begin.run()
  for (const turn of turns) {
    const id = record.run(turn.key, turn.record).lastInsertRowid
    place.run(1, `anonymous ${turn.now} ${turn.key}`, id)
    place.run(2, `${turn.now} ${turn.key}`, id)
    entry.run(stream.run(turn.key).lastInsertRowid, turn.turn)
    if (words) words.mark(turn)
  }
  commit.run()
  parentPort.postMessage(turns.map(turn => turn.id))
}

parentPort.on('message', first => {
  const turns = [first]
  for (let more = receiveMessageOnPort(parentPort); more; more = receiveMessageOnPort(parentPort)) turns.push(more.message)
  const all = turns.flat()
  if (workerData.mode === 'commit-each') for (const turn of all) write([turn])
  else write(all)
})

/** Marks the turns whose words are missing, and writes the words of many in one commit every 250 ms. */
function createWords() {
  db.exec(`CREATE VIRTUAL TABLE words USING fts5(owner, user, assistant, content='', contentless_delete=1, prefix='2 3')`)
  const word = db.prepare('INSERT INTO words(rowid, owner, user, assistant) VALUES (?, ?, ?, ?)')
  const remove = db.prepare('DELETE FROM records WHERE id = ?')
  const waiting = []
  const writeWords = () => {
    if (waiting.length === 0) return
    begin.run()
    for (const { mark, key, texts } of waiting.splice(0)) {
      const id = record.run(`${key}/text`, JSON.stringify(texts)).lastInsertRowid
      word.run(id, texts.owner, texts.user, texts.assistant)
      remove.run(mark)
    }
    commit.run()
  }
  setInterval(writeWords, 250)
  return { mark: ({ key, texts }) => waiting.push({ mark: record.run(`${key}/mark`, '{}').lastInsertRowid, key, texts }) }
}
