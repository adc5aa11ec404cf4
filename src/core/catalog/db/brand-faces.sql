-- name: find_brand_face(brand_id)
SELECT br.name AS brand, br.colour, l.name AS logo
  FROM brands AS br LEFT JOIN brand_logos AS l ON l.brand_id = br.id WHERE br.id = $1::text;

-- name: find_logo(name)
-- The content of a logo. Several brands may have the same one.
SELECT l.content FROM brand_logos AS l WHERE l.name = $1::text LIMIT 1;

-- name: update_brand_colour(brand_id, colour?)
UPDATE brands SET colour = $2::text WHERE id = $1::text;

-- name: put_logo(brand_id, name?, content?)
-- Gives a brand a logo, or none, in place of the one that it has.
INSERT INTO brand_logos (brand_id, name, content) VALUES ($1::text, $2::text, $3::bytea)
    ON CONFLICT (brand_id) DO UPDATE SET name = excluded.name, content = excluded.content;
