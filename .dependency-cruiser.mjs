/** Which file may import which: imports go down, never up, sideways or round in a circle. `npm run check` reads it. */

/** Each room may import the rooms that it lists, and itself. */
const ROOMS = {
  protocol: [],
  kit: ['protocol'],
  host: ['protocol', 'kit'],
  store: ['protocol', 'kit'],
  receive: ['protocol', 'kit', 'host', 'store'],
  send: ['protocol', 'kit', 'host', 'store'],
  collect: ['protocol', 'kit', 'host', 'store', 'receive', 'send'],
  observe: ['protocol', 'kit', 'host', 'store', 'receive', 'send', 'collect'],
  testing: ['protocol', 'kit', 'host', 'store', 'receive', 'send', 'collect', 'observe'],
}

const rooms = Object.entries(ROOMS).map(([room, below]) =>
  forbid(`src/${room} imports rooms below it`, `^src/${room}/`, `^src/(?!(${[room, ...below].join('|')})/)`),
)

export default {
  forbidden: [
    ...rooms,
    forbid('src has the rooms above', '^src/', `^src/(?!(${Object.keys(ROOMS).join('|')})/)[^/]+/`),
    forbid('a folder of a room does not import its siblings', '^src/([^/]+)/([^/]+)/', '^src/$1/(?!$2/)[^/]+/'),
    forbid('a room does not import its folders; faces do', '^src/([^/]+)/[^/]+$', '^src/$1/[^/]+/'),
    forbid('src does not import tools', '^src/', '^(tools|test|bench|examples)/'),
    forbid('only the tools for tests import adapters', '^src/(?!testing/)', '^adapters/'),
    forbid('adapters import protocol, kit and host', '^adapters/', '^src/(?!(protocol|kit|host)/)'),
    forbid('adapters do not import each other', '^adapters/', '^adapters/[^/]+$'),
    forbid('tools import public names and the internals', '^tools/(?!.*/test/)', '^src/[^/]+/'),
    forbid('only tools import the internals', '^(src|adapters)/', '^src/internals\\.ts$'),
    forbid('the inspector does not import the command', '^tools/inspector/src/', '^tools/command/'),
    forbid(
      'the command imports the server of the page',
      '^tools/command/src/',
      '^tools/inspector/src/(?!page-server\\.ts$)',
    ),
    { name: 'imports do not go round in a circle', severity: 'error', from: {}, to: { circular: true } },
  ],
  options: {
    exclude: { path: '^(dist|node_modules)/' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
  },
}

function forbid(name, from, to) {
  return { name, severity: 'error', from: { path: from }, to: { path: to } }
}
