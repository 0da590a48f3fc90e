export const graph = (nodes: string, head = '') => `name: sample\n${head}nodes:\n${nodes}`
export const node = (text: string, head = '') => graph(`  a: { ${text} }\n`, head)
const give = (value: string, head = '') => node(`type: give, value: '${value}'`, head)
const INPUTS =
  'inputs: { type: object, additionalProperties: false, properties: { who: { type: string }, n: { type: integer }, list: { type: array, items: { type: object, additionalProperties: false, properties: { id: { type: string } } } } } }\n'

/** A problem, a text that has it, and the expected messages. */
export const INVALID_DEFINITIONS: readonly (readonly [string, string, ...(string | RegExp)[]])[] = [
  ['an empty text', '', /^1 : must be an object/],
  ['a list', '- a', /^1 : must be an object/],
  ['broken YAML', 'name: sample\nnodes:\n  a: { type: give, value: 1 }\n b: 1\n', /^4 : /, /./],
  ['two documents', 'name: sample\nnodes: { a: { type: give, value: 1 } }\n---\nb: 1', /^3 : Source contains multiple documents/],
  ['a key that is a duplicate key', node('type: give, value: 1') + 'name: again\n', '4 name: is a duplicate key'],
  ['a value that JSON does not have', node('type: give, value: .inf'), '3 nodes.a.value: is not a JSON value'],
  ['an alias of nothing', node('type: give, value: *b'), /Unresolved alias|undefined anchor/],
  [
    'an unknown key',
    node('type: give, value: 1', 'desciption: x\n'),
    '2 desciption: is not a known key | did you mean "description"?',
  ],
  ['no nodes', 'name: sample\n', '1 nodes: is required'],
  ['a graph without a node', 'name: sample\nnodes: {}\n', /^2 nodes: must have at least 1 key/],
  ['a name that is none', 'name: Sample!\nnodes: { a: { type: give, value: 1 } }', /^1 name: must be at most 64 lower-case/],
  [
    'the name of another file',
    'name: other\nnodes: { a: { type: give, value: 1 } }',
    '1 name: must be "sample", the name of its file | Rename the workflow, or the file to other.yaml',
  ],
  ['a node that is no object', graph('  a: 3\n'), /^3 nodes\.a: must be object/],
  ['a node without a type', node('value: 1'), '3 nodes.a.type: is required'],
  ['an unknown type', node('type: giev, value: 1'), '3 nodes.a.type: unknown node type "giev" | did you mean "give"?'],
  ['an unknown setting', node('type: give, value: 1, valeu: 2'), '3 nodes.a.valeu: is not a known key | did you mean "value"?'],
  ['a setting that is missing', node('type: give'), '3 nodes.a.value: is required'],
  ['a setting of the wrong type', node('type: count, width: many'), '3 nodes.a.width: must be integer, was text "many"'],
  [
    'a part of a setting of the wrong type',
    node("type: count, words: ['${{ run.id }}', 3]"),
    '3 nodes.a.words[1]: must be string, was 3',
  ],
  [
    'a next that is not there',
    node('type: give, value: 1, next: aa'),
    '3 nodes.a.next: node "aa" does not exist in this graph | did you mean "a"?',
  ],
  [
    'a catch that is not there',
    node('type: give, value: 1, catch: nowhere'),
    '3 nodes.a.catch: node "nowhere" does not exist in this graph',
  ],
  [
    'a branch to what is not there',
    node('type: person, branches: { yes: nowhere }'),
    '3 nodes.a.branches.yes: node "nowhere" does not exist in this graph',
  ],
  [
    'a start that is not there',
    node('type: give, value: 1', 'start: nowhere\n'),
    '2 start: node "nowhere" does not exist in this graph',
  ],
  [
    'a node that no way leads to',
    graph('  a: { type: give, value: 1 }\n  b: { type: give, value: 1 }\n'),
    /^4 nodes\.b: "b" is unreachable/,
  ],
  [
    'a branch that leads nowhere',
    node("type: ask, if: 'true', branches: { true: end }"),
    /^3 nodes\.a\.branches: has no target for false/,
  ],
  ['a decision that leads nowhere', node("type: ask, if: 'true'"), /^3 nodes\.a\.branches: has no target for true, false/],
  [
    'a branch that is never answered',
    node("type: ask, if: 'true', next: end, branches: { true: end, false: end, flase: end }"),
    '3 nodes.a.branches.flase: a ask never returns "flase" | did you mean "false"?',
  ],
  [
    'branches of a node that answers none',
    node('type: give, value: 1, branches: { x: end }'),
    '3 nodes.a.branches: a give returns no branch | Write next instead',
  ],
  [
    'a branch that its settings never make it answer',
    node('type: choose, kind: choice, choices: [red, green], branches: { red: end, green: end, blue: end }'),
    '3 nodes.a.branches.blue: a choose never returns "blue" | Use one of: red, green, timeout',
  ],
  [
    'a branch that leads nowhere with its settings',
    node('type: choose, kind: choice, choices: [red, green], branches: { red: end, timeout: end }'),
    /^3 nodes\.a\.branches: has no target for green \| Write branches: \{ green: <node> \}/,
  ],
  [
    'a branch that is written wrong, and the one that was meant',
    node('type: choose, event: go, branches: { evnet: end }'),
    '3 nodes.a.branches.evnet: a choose never returns "evnet" | did you mean "event"?',
    '3 nodes.a.branches: has no target for event | Write branches: { event: <node> }, with end for the end of a path',
  ],
  [
    'branches that its settings give it none of',
    node('type: choose, branches: { event: end }'),
    '3 nodes.a.branches.event: a choose never returns "event" | Write next instead',
  ],
  ['a body that is missing', node("type: each, over: 'input.list'"), /^3 nodes\.a\.do: is required/],
  ['bodies that are missing', node('type: both'), /^3 nodes\.a\.bodies: is required/],
  ['a body that is too many', node('type: give, value: 1, do: { type: give, value: 1 }'), '3 nodes.a.do: is not a key of a give'],
  [
    'an unknown key of a graph within',
    node("type: each, over: 'input.list', do: { nodes: { b: { type: give, value: 1 } }, strat: b }"),
    '3 nodes.a.do.strat: is not a known key | did you mean "start"?',
  ],
  [
    'a problem deep inside',
    node("type: both, bodies: { x: { nodes: { b: { type: each, over: 'input.list', do: { type: giev } } } } }"),
    /^3 nodes\.a\.bodies\.x\.nodes\.b\.do\.type: unknown node type "giev"/,
  ],
  ['a length of time that is none', node('type: give, value: 1, timeout: 3 hours'), /^3 nodes\.a\.timeout: must be a duration/],
  ['a retry without attempts', node('type: give, value: 1, retry: { delay: 1s }'), '3 nodes.a.retry.attempts: is required'],
  [
    'a name that objects have',
    graph('  constructor: { type: give, value: 1 }\n'),
    /^3 nodes\.constructor: "constructor" is not a valid node name/,
  ],
  [
    'a name that expressions cannot write',
    graph('  my-node: { type: give, value: 1 }\n'),
    /^3 nodes\.my-node: "my-node" is not a valid node name/,
  ],
  ['a node that is called end', graph('  end: { type: give, value: 1 }\n'), /^3 nodes\.end: "end" cannot be the name/],
  [
    'an unknown tool',
    node('type: use, tool: raed_file'),
    '3 nodes.a.tool: tool "raed_file" does not exist | did you mean "read_file"?',
  ],
  ['an unknown tool of several', node("type: use, tools: [read_file, '${{ run.id }}', x]"), /^3 nodes\.a\.tools\[2\]: tool "x"/],
  ['an unknown profile', node('type: use, profile: nobody'), /^3 nodes\.a\.profile: profile "nobody" does not exist/],
  ['an unknown mode', node('type: use, mode: fly'), /^3 nodes\.a\.mode: mode "fly" does not exist/],
  ['an unknown team', node('type: use, team: nobody'), /^3 nodes\.a\.team: team "nobody"/],
  [
    'a secret that is not configured',
    give('${{ secrets.KEY }}', 'secrets: [KEY]\n'),
    /^2 secrets\[0\]: the secret "KEY" is not configured \| Set workflows\.secrets\.KEY/,
  ],
  ['a secret that is not declared', give('${{ secrets.TOKEN }}'), '3 nodes.a.value: "secrets" has no "TOKEN"'],
  [
    'a default that its schema refuses',
    give('x', 'parameters: { p: { type: integer, default: many } }\n'),
    /^2 parameters\.p\.default: must be integer/,
  ],
  ['a schema that is none', give('x', 'outputs: { type: strin }\n'), /^2 outputs\.type: must be one of/],
  ['a schema that refers to nothing', give('x', "outputs: { $ref: '#/$defs/x' }\n"), /^2 outputs: is not a valid JSON Schema/],
  ['an input that is no object', give('x', 'inputs: { type: array }\n'), /^2 inputs\.type: must be object/],
  [
    'a workflow that contains itself',
    node('type: part, workflow: sample'),
    /^3 nodes\.a\.workflow: the workflow contains itself: sample → sample/,
  ],
  [
    'an expression that cannot be read',
    node("type: ask, if: 'input.n > > 2', next: end"),
    /^3 nodes\.a\.if: "input.n > > 2" is not a valid expression/,
  ],
  ['a hole that is not closed', give('${{ input.n'), /^3 nodes\.a\.value: contains \$\{\{ without \}\}/],
  [
    'an expression in holes where it is one already',
    node("type: ask, if: '${{ true }}', next: end"),
    /is not a valid expression.*without \$\{\{ \}\}/,
  ],
  ['an unknown variable', give('${{ inptu.n }}'), '3 nodes.a.value: unknown variable "inptu" | did you mean "input"?'],
  [
    'an unknown key of the input',
    give('${{ input.hwo }}', INPUTS),
    '4 nodes.a.value: "input" has no "hwo" | did you mean "who"?',
  ],
  [
    'an unknown key of an item',
    give('${{ input.list.map(x, x.idd) }}', INPUTS),
    '4 nodes.a.value: "x" has no "idd" | did you mean "id"?',
  ],
  [
    'an unknown key after an index',
    give('${{ input.list[0].idd }}', INPUTS),
    '4 nodes.a.value: "input.list[…]" has no "idd" | did you mean "id"?',
  ],
  [
    'an impossible key in has()',
    give('${{ has(input.hwo) }}', INPUTS),
    '4 nodes.a.value: "input" has no "hwo" | did you mean "who"?',
  ],
  [
    'an unknown key of a node',
    graph("  a: { type: count, next: b }\n  b: { type: give, value: '${{ nodes.a.totl }}' }\n"),
    '4 nodes.b.value: "nodes.a" has no "totl" | did you mean "total"?',
  ],
  ['an unknown parameter', give('${{ parameters.x }}'), '3 nodes.a.value: "parameters" has no "x"'],
  ['an unknown node', give('${{ nodes.b }}'), '3 nodes.a.value: node "b" does not exist | did you mean "a"?'],
  [
    'a node that has not run yet',
    graph("  a: { type: give, value: '${{ nodes.b }}', next: b }\n  b: { type: give, value: 1 }\n"),
    /^3 nodes\.a\.value: nodes\.b has no output here/,
  ],
  ['an output of its own', give('${{ nodes.a }}'), /^3 nodes\.a\.value: nodes\.a has no output here/],
  ['an item outside of a loop', give('${{ item }}'), /^3 nodes\.a\.value: unknown variable "item"/],
  [
    'an error where nothing was caught',
    give('${{ error.code }}'),
    /^3 nodes\.a\.value: unknown variable "error" \| Use error only in nodes after a `catch`/,
  ],
  [
    'a sum of a text and a number',
    give('${{ input.who + input.n }}', INPUTS),
    /^4 nodes\.a\.value: no such overload: string \+ double/,
  ],
  [
    'a condition that is no truth',
    node("type: ask, if: 'input.who', next: end", INPUTS),
    '4 nodes.a.if: must return a boolean, but returns string',
  ],
  [
    'a list that is none',
    node("type: each, over: 'input.n', do: { type: give, value: 1 }", INPUTS),
    '4 nodes.a.over: must return a list, but returns double',
  ],
  [
    'an unknown function',
    give('${{ sise(input.list) }}', INPUTS),
    /^4 nodes\.a\.value: found no matching overload for 'sise.* \| did you mean "size"\?/,
  ],
]
