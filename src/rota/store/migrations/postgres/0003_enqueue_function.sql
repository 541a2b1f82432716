-- Enqueue from SQL, in whatever language and transaction: SELECT rota.enqueue('send', '{"to": "a@b.c"}').
--
-- It does what ops/enqueue.py does, and tests/transaction holds the two against each other. It runs with the rights of
-- its caller. The search path is fixed, with the temporary schema last, so that nobody can put tables of their own
-- in the place of ours; its owner may therefore make it SECURITY DEFINER.

SELECT set_config('search_path', format('%I, pg_temp', current_schema()), true);

CREATE FUNCTION enqueue(
    job text,
    arguments jsonb DEFAULT '{}',
    app text DEFAULT NULL,
    namespace text DEFAULT 'default',
    queue text DEFAULT NULL,
    priority integer DEFAULT NULL,
    delay interval DEFAULT NULL,
    run_at timestamptz DEFAULT NULL,
    key text DEFAULT NULL,
    tags text[] DEFAULT NULL,
    start_by timestamptz DEFAULT NULL,
    start_within interval DEFAULT NULL,
    notify boolean DEFAULT false
) RETURNS uuid
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $function$
DECLARE
    hidden    CONSTANT text := '[[:cntrl:]\u00A0\u00AD\u200B-\u200F\u2028-\u202F\u205F-\u2064\u3000\uFEFF]';
    infinite  CONSTANT jsonpath := '$.** ? (@.type() == "number" && (@ > 1.7976931348623158e308 || '
                                   '@ < -1.7976931348623158e308))';
    now_us    bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    written   text;
    apps      text[];
    wrong     text;
    version   bigint;
    defined   jsonb;
    required  text;
    lane      integer;
    policy    text;
    max_depth bigint;
    depth     bigint;
    oldest    bigint;
    after_s   numeric;
    due_at    bigint;
    deadline  bigint;
    place     bigint;
    hash      text;
    holder    uuid;
    known     text;
    id        uuid;
BEGIN
    -- What cannot be meant, in the words of the Python API.
    IF enqueue.job IS NULL OR enqueue.namespace IS NULL THEN
        RAISE 'the job and the namespace must be given' USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.arguments IS NULL OR jsonb_typeof(enqueue.arguments) <> 'object' THEN
        RAISE '%(): the arguments must be one JSON object, by parameter name', enqueue.job USING ERRCODE = 'RT002';
    END IF;
    IF enqueue.delay IS NOT NULL AND enqueue.run_at IS NOT NULL THEN
        RAISE 'give delay or run_at, not both' USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.start_by IS NOT NULL AND enqueue.start_within IS NOT NULL THEN
        RAISE 'give start_by or start_within, not both' USING ERRCODE = 'RT003';
    END IF;
    IF NOT extract(epoch FROM coalesce(enqueue.delay, '0'::interval)) BETWEEN 0 AND 3153600000 THEN
        RAISE 'delay must be between 0 and 100 years, not %', enqueue.delay USING ERRCODE = 'RT003';
    END IF;
    IF NOT extract(epoch FROM coalesce(enqueue.start_within, '1 s'::interval)) BETWEEN 0.000001 AND 3153600000 THEN
        RAISE 'start_within must be longer than zero and at most 100 years, not %', enqueue.start_within
            USING ERRCODE = 'RT003';
    END IF;
    IF NOT (isfinite(coalesce(enqueue.run_at, now())) AND isfinite(coalesce(enqueue.start_by, now()))) THEN
        RAISE 'run_at and start_by must be instants, not infinity' USING ERRCODE = 'RT003';
    END IF;
    IF NOT (coalesce(enqueue.run_at, now()) BETWEEN '0001-01-01Z' AND '9999-12-31Z'
            AND coalesce(enqueue.start_by, now()) BETWEEN '0001-01-01Z' AND '9999-12-31Z') THEN
        RAISE 'run_at and start_by must be in the years 1 to 9999' USING ERRCODE = 'RT003';
    END IF;
    IF NOT coalesce(enqueue.priority, 0) BETWEEN -100 AND 100 THEN
        RAISE 'priority must be between -100 and 100, not %', enqueue.priority USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.queue IS NOT NULL
       AND (length(enqueue.queue) > 128 OR enqueue.queue !~ '^[A-Za-z_][A-Za-z0-9_.:-]*$' OR enqueue.queue ~ '\n') THEN
        RAISE 'a queue''s name must start with a letter and have at most 128 letters, digits or _ . : -, not %',
            quote_literal(left(enqueue.queue, 64)) USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.key IS NOT NULL AND (length(enqueue.key) NOT BETWEEN 1 AND 512 OR enqueue.key ~ hidden) THEN
        RAISE 'key must be 1 to 512 printable characters, not %', quote_literal(left(enqueue.key, 64))
            USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.tags IS NOT NULL THEN
        IF array_ndims(enqueue.tags) > 1 THEN
            RAISE 'tags must be one list of texts' USING ERRCODE = 'RT003';
        END IF;
        IF cardinality(enqueue.tags) > 50 THEN
            RAISE 'an execution has at most 50 tags, not %', cardinality(enqueue.tags) USING ERRCODE = 'RT003';
        END IF;
        IF EXISTS (SELECT FROM unnest(enqueue.tags) t
                   WHERE t IS NULL OR length(t) NOT BETWEEN 1 AND 512 OR t ~ hidden) THEN
            RAISE 'a tag must be 1 to 512 printable characters' USING ERRCODE = 'RT003';
        END IF;
    END IF;
    written := enqueue.arguments::text;
    IF octet_length(written) > 1048576 THEN
        RAISE '%(): the arguments are % bytes of JSON; at most 1048576 are stored. Keep large data elsewhere and pass a '
              'reference.', enqueue.job, octet_length(written) USING ERRCODE = 'RT002';
    END IF;
    IF length(written) > 200 AND jsonb_path_exists(enqueue.arguments, 'strict $.**{201}') THEN
        RAISE '%(): the arguments are nested deeper than 200 levels', enqueue.job USING ERRCODE = 'RT002';
    END IF;

    IF jsonb_path_exists(enqueue.arguments, infinite) THEN
        RAISE '%(): a number in the arguments is too large', enqueue.job USING ERRCODE = 'RT002';
    END IF;

    -- The job as its newest definition says.
    IF enqueue.app IS NULL THEN
        SELECT array_agg(j.app ORDER BY j.app) INTO apps
        FROM job j WHERE j.namespace = enqueue.namespace AND j.name = enqueue.job;
        IF cardinality(apps) > 1 THEN
            RAISE 'the apps % have a job %: say which with app => ...', array_to_string(apps, ', '),
                quote_literal(enqueue.job) USING ERRCODE = 'RT001';
        END IF;
        enqueue.app := apps[1];
    END IF;
    SELECT j.version, v.definition::jsonb, j.requirements INTO version, defined, required
    FROM job j JOIN job_version v ON v.id = j.version
    WHERE j.namespace = enqueue.namespace AND j.app = enqueue.app AND j.name = enqueue.job;
    IF version IS NULL THEN
        RAISE '% has no job %: check the name, or start a worker of the app once so that its jobs are known',
            coalesce('app ' || quote_literal(enqueue.app), 'the namespace ' || quote_literal(enqueue.namespace)),
            quote_literal(enqueue.job) USING ERRCODE = 'RT001';
    END IF;
    enqueue.queue := coalesce(enqueue.queue, defined ->> 'queue');
    enqueue.priority := coalesce(enqueue.priority, (defined ->> 'priority')::integer);

    -- Arguments by name. Their types are checked when the function is called.
    SELECT max(concat(CASE WHEN p.name IS NULL THEN 'there is no argument `' ELSE 'missing argument `' END,
                      coalesce(a.name, p.name), '`')) INTO wrong
    FROM jsonb_object_keys(enqueue.arguments) a (name)
    FULL JOIN jsonb_each(defined -> 'parameters') p (name, about) ON p.name = a.name
    WHERE (p.name IS NULL AND NOT jsonb_path_exists(defined, '$.parameters.*.others'))
       OR (a.name IS NULL AND (p.about ->> 'required')::boolean);
    IF wrong IS NOT NULL THEN
        RAISE '%(): %; it takes (%)', enqueue.job, wrong, (
            SELECT string_agg(p.name || CASE WHEN (p.about ->> 'required')::boolean THEN '' ELSE ' = ...' END, ', ')
            FROM jsonb_each(defined -> 'parameters') p (name, about)) USING ERRCODE = 'RT002';
    END IF;

    -- Where it goes. The first enqueue to a queue that no definition names brings the queue into being.
    FOR look IN 1..2 LOOP
        SELECT l.id, q.policy, q.max_depth INTO lane, policy, max_depth
        FROM lane l JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
        WHERE l.namespace = enqueue.namespace AND l.app = enqueue.app AND l.queue = enqueue.queue
          AND l.requirements = required;
        EXIT WHEN lane IS NOT NULL;
        INSERT INTO queue (namespace, name) VALUES (enqueue.namespace, enqueue.queue) ON CONFLICT DO NOTHING;
        INSERT INTO lane (namespace, app, queue, requirements)
        VALUES (enqueue.namespace, enqueue.app, enqueue.queue, required) ON CONFLICT DO NOTHING;
    END LOOP;

    -- When.
    due_at := CASE WHEN enqueue.run_at IS NOT NULL
                   THEN greatest(now_us, round(extract(epoch FROM enqueue.run_at) * 1000000))
                   ELSE now_us + round(extract(epoch FROM coalesce(enqueue.delay, '0'::interval)) * 1000000) END;
    deadline := CASE WHEN enqueue.start_by IS NOT NULL THEN round(extract(epoch FROM enqueue.start_by) * 1000000)
                     ELSE due_at + round(1000000 * coalesce(extract(epoch FROM enqueue.start_within),
                                                            (defined ->> 'start_within_s')::numeric)) END;

    -- Milliseconds, then the fraction of one, so that ids sort by the time they were made.
    id := (lpad(to_hex(now_us / 1000), 12, '0') || '7' || lpad(to_hex(now_us % 1000 * 4096 / 1000), 3, '0')
           || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid;

    -- Until the commit, one caller at a time for each key.
    IF enqueue.key IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(
            concat_ws(' ', current_schema(), enqueue.namespace, enqueue.app, enqueue.job), 0));
        PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(
            ' ', current_schema(), enqueue.namespace, enqueue.app, enqueue.job, 'idempotency', enqueue.key), 0));
        hash := encode(sha256(convert_to(written, 'UTF8')), 'hex');
        SELECT k.holder, k.arguments_hash INTO holder, known FROM unique_key k
        WHERE k.namespace = enqueue.namespace AND k.app = enqueue.app AND k.job = enqueue.job
          AND k.kind = 'idempotency' AND k.key = enqueue.key;
        IF known = hash THEN
            RETURN holder;
        ELSIF known IS NOT NULL THEN
            SELECT x.arguments INTO known FROM execution x WHERE x.id = holder;
            RAISE 'the key % belongs to execution % of job % with the arguments %; this call has %. Use another key, or '
                  'the same arguments.', quote_literal(enqueue.key), holder, quote_literal(enqueue.job),
                  left(coalesce(known, '(pruned)'), 200), left(written, 200) USING ERRCODE = 'RT004';
        END IF;
        INSERT INTO unique_key (namespace, app, job, kind, key, holder, arguments_hash, taken_at)
        VALUES (enqueue.namespace, enqueue.app, enqueue.job, 'idempotency', enqueue.key, id, hash, now_us)
        -- Only where the transaction sees an older state than the key; and then this is refused as it should be.
        ON CONFLICT ON CONSTRAINT unique_key_pkey DO UPDATE SET holder = excluded.holder;
    END IF;

    IF max_depth IS NOT NULL THEN
        SELECT count(*) INTO depth FROM (
            SELECT FROM lane l JOIN ready r ON r.lane = l.id
            WHERE l.namespace = enqueue.namespace AND l.queue = enqueue.queue LIMIT max_depth + 1) counted;
        IF depth >= max_depth THEN
            SELECT min(x.run_at) INTO oldest FROM lane l
            CROSS JOIN LATERAL (SELECT r.id FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1) head
            JOIN execution x ON x.id = head.id
            WHERE l.namespace = enqueue.namespace AND l.queue = enqueue.queue;
            after_s := least(60, greatest(1, round(coalesce(now_us - oldest, 0) / 20000000.0, 1)));
            RAISE 'queue % is full (% of % queued): nothing was accepted, retry after % s', quote_literal(enqueue.queue),
                depth, max_depth, trim_scale(after_s) USING ERRCODE = 'RT005';
        END IF;
    END IF;

    INSERT INTO execution (
        id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, key, created_at, run_at, deadline,
        tags)
    VALUES (
        id, enqueue.namespace, enqueue.app, enqueue.job, version, 'sql:' || session_user, enqueue.queue, lane,
        enqueue.priority, written, enqueue.key, now_us, due_at, deadline,
        array_to_json(enqueue.tags)::text);
    IF deadline IS NOT NULL THEN
        INSERT INTO expiry (deadline, id) VALUES (deadline, id);
    END IF;
    IF due_at <= now_us THEN
        place := CASE policy WHEN 'fifo' THEN due_at ELSE due_at - enqueue.priority * 60000000::bigint END;
        INSERT INTO ready (lane, rank, id, fence, attempts, crashes) VALUES (lane, place, id, 0, 0, 0);
    ELSE
        INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes)
        VALUES (id, lane, enqueue.priority, due_at, 0, 0, 0);
    END IF;
    IF enqueue.notify THEN
        PERFORM pg_notify(current_schema() || '_hints', CASE WHEN place IS NULL
            THEN jsonb_build_array(jsonb_build_object('type', 'due', 'at', due_at))
            ELSE jsonb_build_array(jsonb_build_object('type', 'ready', 'lanes', jsonb_build_object(lane, place)))
            END::text);
    END IF;
    RETURN id;
END
$function$;

COMMENT ON FUNCTION enqueue IS 'Accepts one execution of a job in the caller''s transaction and returns its id.';

SELECT set_config('search_path', quote_ident(current_schema()), true);
