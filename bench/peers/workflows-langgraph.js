import { DatabaseSync } from 'node:sqlite'
import { Annotation, END, START, StateGraph } from '@langchain/langgraph'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { serveRuns, STEPS, work } from './workflow-runs.js'

const [file] = process.argv.slice(2)
const checkpointer = file && { checkpointer: new SqliteSaver(sqliteOf(file)) }
const State = Annotation.Root({ value: Annotation({ reducer: (a, b) => Math.max(a, b), default: () => 0 }) })
const name = i => (i < 0 ? START : i === STEPS.length ? END : `n${i}`)
const graphs = {
  sequence: () => [...STEPS, STEPS.length].reduce((graph, i) => graph.addEdge(name(i - 1), name(i)), copy()),
  parallel: () => STEPS.reduce((graph, i) => graph.addEdge(START, name(i)).addEdge(name(i), END), copy()),
}
function copy() {
  return STEPS.reduce((graph, i) => graph.addNode(`n${i}`, () => work(i)), new StateGraph(State))
}
const [sequence, parallel] = [graphs.sequence().compile(checkpointer), graphs.parallel().compile(checkpointer)]
const run = graph =>
  graph.invoke({ value: 0 }, { configurable: { thread_id: crypto.randomUUID() }, recursionLimit: 50, durability: 'sync' })

/** The driver for its saver, on Node's sqlite: better-sqlite3 would have to be compiled. */
function sqliteOf(path) {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA synchronous = FULL')
  return {
    exec: sql => db.exec(sql),
    prepare: sql => statementOf(db.prepare(sql)),
    pragma: text => db.prepare(`PRAGMA ${text}`).all(),
    transaction:
      work =>
      (...given) => {
        db.exec('BEGIN')
        const answer = work(...given)
        db.exec('COMMIT')
        return answer
      },
  }
}

function statementOf(statement) {
  const given = values => values.map(value => value ?? null)
  return {
    run: (...values) => statement.run(...given(values)),
    get: (...values) => statement.get(...given(values)),
    all: (...values) => statement.all(...given(values)),
  }
}

serveRuns({ sequence: () => run(sequence), parallel: () => run(parallel) })
